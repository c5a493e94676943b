#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace shardproof {

/// Whether a file can come to stand at `path`: nothing is there or a regular file that this user
/// may write, and its folder exists and lets this user write. Returns the path with its links
/// resolved, also where the last leads to nothing yet. Throws Error(`label`, ...) naming path and
/// reason.
std::filesystem::path require_replaceable(const std::filesystem::path& path,
                                          std::string_view label);

/// Makes `bytes` the content of `path`: all of it or nothing, by a temporary file in its folder and
/// a rename, both brought to the disk. Only a regular file that this user may write is ever
/// replaced; its mode is kept, and its owner where the user may give files away. A new file has
/// the mode 0666 less the umask. A symbolic link is written through; of several hard links one is
/// replaced. The temporary has no name where the system allows it, else one that
/// remove_temporaries (weights/base/detail/temporary_name.h) knows. Throws Error(`label`, ...)
/// naming path and reason; then `path` is as it was and nothing else is left.
void replace_file(const std::filesystem::path& path, std::span<const char> bytes,
                  std::string_view label);

}  // namespace shardproof
