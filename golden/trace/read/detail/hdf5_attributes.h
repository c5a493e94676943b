#pragma once

#include <hdf5.h>

#include "golden/trace/read/detail/allowance.h"
#include "golden/trace/read/dump.h"
#include "weights/hdf5/detail/reader.h"

namespace shardproof::dump {

/// Returns whether a type is h5py's bool: an int8 enum with FALSE = 0 and TRUE = 1.
bool is_boolean(hid_t type);

/// Returns the attributes of a group or dataset as texts: texts unchanged, numbers as digits, bools
/// as true or false, several of them as a JSON list. Skips empty ones and other types, which no
/// attribute of a trace has. Throws Error: "dump_open" (HDF5 cannot read it), "dump_value" (a text
/// longer than 64 KiB), "dump_size".
Attributes attributes_of(const Hdf5Object& object, Allowance& allowance);

}  // namespace shardproof::dump
