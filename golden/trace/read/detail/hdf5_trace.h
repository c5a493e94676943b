#pragma once

#include <cstdint>
#include <filesystem>

#include "golden/trace/read/detail/sink.h"

namespace shardproof::dump {

/// Reads an HDF5 file, to be called in a child process: Debian's HDF5 crashes on some damaged
/// files. Before an array is read, all that it declares was counted against `allowance`. Throws
/// Error: "dump_open" (what HDF5 cannot read), and as read_dump does.
void read_hdf5(const std::filesystem::path& path, std::uint64_t allowance, Sink& sink);

}  // namespace shardproof::dump
