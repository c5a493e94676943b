#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace shardproof {

/// Checks that `path` can be written or replaced: it does not exist or is a regular file that this
/// user may write, and its folder exists and is writable. Returns the path with symbolic links
/// resolved, even if the last link dangles. Throws Error(`label`, ...) with path and reason
/// otherwise.
std::filesystem::path require_replaceable(const std::filesystem::path& path,
                                          std::string_view label);

/// The file that is to take the place of another, as replace_file says; gone if it is not
/// committed.
class Replacement {
 public:
  /// Throws Error(`label`, ...) with path and reason on failure.
  Replacement(const std::filesystem::path& path, std::string_view label);
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement();

  /// Descriptor of the empty file, for reading and writing.
  int file() const;
  /// Puts what was written, `size` bytes, in the place of the old file. Throws as above; the old
  /// file is then unchanged. Call it once.
  void commit(std::uint64_t size);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Replaces the content of `path` with `bytes`, all or nothing: writes a temporary file in the same
/// folder and renames it, with fsync of both. Only a regular file that this user may write is
/// replaced; its mode is kept, and its owner where the user may change owners. A new file has mode
/// 0666 less the umask. A symbolic link is followed; only one of several hard links is replaced.
/// The temporary is unnamed where the system allows it, otherwise its name is known to
/// remove_temporaries (weights/base/detail/temporary_name.h). Throws Error(`label`, ...) with path
/// and reason on failure; `path` is then unchanged and nothing else is left.
void replace_file(const std::filesystem::path& path, std::span<const char> bytes,
                  std::string_view label);

}  // namespace shardproof
