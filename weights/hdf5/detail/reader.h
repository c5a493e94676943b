#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/hdf5/detail/handle.h"

namespace shardproof {

/// An HDF5 file of anybody's, read on the assumption that it is hostile: nothing it declares is
/// believed before the caller has seen it. What HDF5 cannot read is thrown as Error(`label`, ...),
/// which names the file; HDF5 prints nothing as long as the reader lives.
class Hdf5Reader {
 public:
  /// Texts in the file are at most this long; a longer one is refused.
  static constexpr std::size_t kLongestText = 4096;

  class Dataset {
   public:
    std::vector<std::uint64_t> shape() const;  ///< none, too, where it has no simple one
    std::optional<std::string> text(const char* name) const;  ///< as Hdf5Reader::text
    bool is_f32() const;                                      ///< 32-bit little-endian IEEE floats
    bool is_int8() const;                                     ///< signed 8-bit integers
    std::size_t element_bytes() const;

    /// Whether the data lie in this file, and not in others.
    bool is_inside() const;
    std::uint64_t stored_bytes() const;
    /// The extents of a chunk; empty where the data lie in one piece.
    std::vector<std::uint64_t> chunk() const;
    /// Why reading its chunks could take more memory than they declare, or "" if it cannot: each
    /// chunk is inflated once (weights/hdf5/detail/inflation.h). `shape` is its own.
    std::string inflation_fault(const Shape& shape) const;

    /// Reads all elements, floats or integers, as f32; the reason if that failed.
    std::optional<Hdf5Failure> read(std::span<float> out) const;

   private:
    friend class Hdf5Reader;
    Dataset(const Hdf5Reader& file, Hdf5Handle handle);
    Hdf5Handle options() const;

    const Hdf5Reader& file_;
    Hdf5Handle handle_;
  };

  struct Link {
    std::string name;
    bool hard;  ///< not a link to elsewhere
  };

  Hdf5Reader(const std::filesystem::path& path, std::string label);

  std::uint64_t size() const { return size_; }  ///< of the file in bytes

  /// Attributes of the root. Nothing where there is none of the name, or it is not one string (of
  /// fixed or variable length), or not one integer.
  bool has(const char* attribute) const;
  std::optional<std::string> text(const char* attribute) const;
  std::optional<std::int64_t> integer(const char* attribute) const;

  /// What the root holds, in the file's own order.
  std::vector<Link> links() const;
  /// Nothing where the name stands for something else than a dataset.
  std::optional<Dataset> dataset(const std::string& name) const;

  /// Throws Error(`label`, ...) with the file's name before the reason.
  [[noreturn]] void refuse(std::string_view label, std::string_view reason) const;

 private:
  Hdf5Handle open();
  std::optional<std::string> text_of(hid_t object, const char* name) const;
  void need(bool held) const;

  std::string path_, label_;
  std::uint64_t size_ = 0;
  Hdf5Silence silence_;  // before the file, so that its closing is silent, too
  Hdf5Handle file_;
};

}  // namespace shardproof
