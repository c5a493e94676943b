#pragma once

#include <hdf5.h>

#include <string_view>

#include "golden/trace/read/detail/allowance.h"
#include "golden/trace/read/dump.h"

namespace shardproof::dump {

/// Whether it is a bool as h5py has it: an int8 with the members FALSE, 0, and TRUE, 1.
bool is_boolean(hid_t type);

/// The attributes of a group or dataset as texts: a text as it is, a number as its digits, a bool
/// as true or false, several of them as a JSON list. What is nothing of these, or empty, is left
/// out: a trace's attributes are none. `where` is for messages. Throws Error: "dump_open" (what
/// HDF5 cannot read), "dump_value" (a text longer than 64 KiB), "dump_size".
Attributes attributes_of(hid_t object, std::string_view where, Allowance& allowance);

}  // namespace shardproof::dump
