#pragma once

#include <filesystem>
#include <string>

#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof {

/// Writes a dump into an HDF5 file (docs/trace-format.md), complete or not at all, which read_dump
/// reads as the same values in the same order; where places in the run do not give that, the
/// attribute `listed` of each value does. Throws Error: `label` (the file cannot be written),
/// "dump_value" (a name that a file cannot have, or a value whose elements were not read),
/// "dump_attribute" (a text with a zero character, or without a name).
void write_dump(const dump::Dump& dump, const std::filesystem::path& target,
                const std::string& label = "trace_c1");

}  // namespace shardproof
