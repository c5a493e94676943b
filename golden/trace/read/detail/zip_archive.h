#pragma once

#include <zip.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shardproof::dump {

/// An untrusted zip file: its members by name, stored or deflated. Throws Error("dump_open", ...)
/// for what libzip cannot read.
class ZipArchive {
 public:
  /// Reads one member from start to end.
  class Member {
   public:
    /// Reads exactly as many bytes as `out` has.
    void read(std::span<std::byte> out);
    /// Checks that nothing follows, and that the checksum of everything read is right.
    void end();

   private:
    friend class ZipArchive;
    struct Close {
      void operator()(zip_file_t* file) const { zip_fclose(file); }
    };
    Member(std::string name, zip_file_t* file) : name_(std::move(name)), file_(file) {}

    std::string name_;
    std::unique_ptr<zip_file_t, Close> file_;
  };

  /// Also throws for a member that is encrypted, compressed in another way, or duplicated.
  explicit ZipArchive(const std::filesystem::path& path);

  const std::vector<std::string>& names() const { return names_; }
  Member open(std::size_t member) const;

 private:
  struct Discard {
    void operator()(zip_t* archive) const { zip_discard(archive); }
  };

  std::unique_ptr<zip_t, Discard> archive_;
  std::vector<std::string> names_;
};

}  // namespace shardproof::dump
