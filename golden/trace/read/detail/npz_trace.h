#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "golden/trace/read/detail/sink.h"

namespace shardproof::dump {

/// The message for a file of torch.save, which is also a zip archive.
inline constexpr std::string_view kOfTorch =
    "is a PyTorch file of torch.save; convert it: numpy.savez(\"mine.npz\", **{name: "
    "tensor.float().cpu().numpy() for ...}, shardproof=json.dumps({...})) (docs/compare.md)";

/// Reads a NumPy archive, a zip file of .npy files; call it in a child process. Counts what an
/// array declares against `allowance` before reading it. Throws Error: "dump_open" (not a zip file,
/// damaged, encrypted, compressed other than by deflate, or a duplicate member), and as read_dump
/// does.
void read_npz(const std::filesystem::path& path, std::uint64_t allowance, Sink& sink);

}  // namespace shardproof::dump
