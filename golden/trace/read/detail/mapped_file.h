#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "weights/base/detail/descriptor.h"

namespace shardproof::dump {

/// A file of an untrusted trace, open and mapped while this lives.
class MappedFile {
 public:
  /// Throws Error("dump_open") if it cannot be opened or is not a regular file.
  explicit MappedFile(std::filesystem::path path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::uint64_t size() const { return static_cast<std::uint64_t>(status_.st_size); }
  /// Returns the file's bytes, read where they are needed; empty if the system maps none. Those
  /// beyond the end of a file that another program shortens raise SIGBUS.
  std::span<const std::byte> bytes() const { return bytes_; }
  bool begins(std::string_view with, std::uint64_t at) const;
  /// Throws Error(label), naming a file.
  [[noreturn]] static void refuse(std::string_view label, const std::filesystem::path& path,
                                  std::string_view why);
  /// Throws Error("dump_changed") unless size and time of change are what they were at the start.
  void require_unchanged() const;

 private:
  std::filesystem::path path_;
  Descriptor file_;
  struct stat status_ {};
  std::string quoted_;
  std::span<const std::byte> bytes_;
};

}  // namespace shardproof::dump
