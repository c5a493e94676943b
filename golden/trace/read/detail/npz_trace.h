#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "golden/trace/read/detail/sink.h"

namespace shardproof::dump {

/// What is said of a file that torch.save wrote, which is a zip archive, too.
inline constexpr std::string_view kOfTorch =
    "is a PyTorch file of torch.save; convert it: numpy.savez(\"mine.npz\", **{name: "
    "tensor.float().cpu().numpy() for ...}, shardproof=json.dumps({...})) (docs/compare.md)";

/// Reads a NumPy archive, a zip file of .npy files, to be called in a child process. Before an
/// array is read, what it declares was counted against `allowance`. Throws Error: "dump_open" (what
/// is no zip file, damaged, encrypted, or compressed otherwise than by deflate; a member twice),
/// and as read_dump does.
void read_npz(const std::filesystem::path& path, std::uint64_t allowance, Sink& sink);

}  // namespace shardproof::dump
