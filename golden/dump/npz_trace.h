#pragma once

#include <cstdint>
#include <filesystem>

#include "golden/dump/sink.h"

namespace shardproof::dump {

/// Reads a NumPy archive, a zip file of .npy files, to be called in a child process. Before an
/// array is read, what it declares was counted against `allowance`. Throws Error: "dump_open" (what
/// is no zip file, damaged, encrypted, or compressed otherwise than by deflate; a member twice),
/// and as read_dump does.
void read_npz(const std::filesystem::path& path, std::uint64_t allowance, Sink& sink);

}  // namespace shardproof::dump
