#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace shardproof {

/// Whether a file can come to stand at `path`: nothing is there or a regular file, and its folder
/// exists and lets this user write. Returns the path with its links resolved. Throws
/// Error(`label`, ...) naming path and reason.
std::filesystem::path require_replaceable(const std::filesystem::path& path,
                                          std::string_view label);

/// Makes `bytes` the content of `path`: all of it or nothing, by a temporary file beside it and a
/// rename. Only a regular file is ever replaced; a link is written through. Throws
/// Error(`label`, ...) naming path and reason; then `path` is as it was and nothing else is left.
void replace_file(const std::filesystem::path& path, std::span<const char> bytes,
                  std::string_view label);

}  // namespace shardproof
