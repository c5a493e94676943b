#pragma once

#include <cstdint>
#include <filesystem>

#include "golden/trace/read/detail/sink.h"

namespace shardproof::dump {

/// Reads an HDF5 file; call it in a child process, because Debian's HDF5 crashes on some damaged
/// files. Counts everything that an array declares against `allowance` before reading it. Throws
/// Error: "dump_open" (HDF5 cannot read it), and as read_dump does.
void read_hdf5(const std::filesystem::path& path, std::uint64_t allowance, Sink& sink);

}  // namespace shardproof::dump
