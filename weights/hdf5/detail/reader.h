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

/// Reads an HDF5 file that may be hostile: nothing it declares is trusted before the caller has
/// checked it. Throws Error(`label`, ...), with the file's name, where HDF5 fails. HDF5 prints
/// nothing during the reader's lifetime.
class Hdf5Reader {
 public:
  /// Longest text attribute that is accepted, in bytes.
  static constexpr std::size_t kLongestText = 4096;

  class Dataset {
   public:
    std::vector<std::uint64_t> shape() const;                 ///< empty if not a simple dataspace
    std::optional<std::string> text(const char* name) const;  ///< like Hdf5Reader::text
    bool is_f32() const;                                      ///< 32-bit little-endian IEEE floats
    bool is_int8() const;                                     ///< signed 8-bit integers
    std::size_t element_bytes() const;

    /// Returns whether the data are stored in this file, not in external ones.
    bool is_inside() const;
    std::uint64_t stored_bytes() const;
    /// Extents of a chunk; empty if the dataset is not chunked.
    std::vector<std::uint64_t> chunk() const;
    /// Returns why reading the chunks could take more memory than they declare, or "" if it cannot;
    /// inflates each chunk once (weights/hdf5/detail/inflation.h). `shape` is the dataset's.
    std::string inflation_fault(const Shape& shape) const;

    /// Reads all elements, floats or integers, as f32; returns the failure, if any.
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
    bool hard;  ///< not a soft or external link
  };

  Hdf5Reader(const std::filesystem::path& path, std::string label);

  std::uint64_t size() const { return size_; }  ///< size of the file in bytes

  /// Attributes of the root. text() returns nullopt unless the attribute is one string (of fixed or
  /// variable length), integer() unless it is one integer.
  bool has(const char* attribute) const;
  std::optional<std::string> text(const char* attribute) const;
  std::optional<std::int64_t> integer(const char* attribute) const;

  /// Returns the links of the root, in the file's own order.
  std::vector<Link> links() const;
  /// Returns nullopt if the name is not a dataset.
  std::optional<Dataset> dataset(const std::string& name) const;

  /// Throws Error(`label`, ...): the file's name, then the reason.
  [[noreturn]] void refuse(std::string_view label, std::string_view reason) const;

 private:
  Hdf5Handle open();
  std::optional<std::string> text_of(hid_t object, const char* name) const;
  void need(bool held) const;

  std::string path_, label_;
  std::uint64_t size_ = 0;
  Hdf5Silence silence_;  // precedes file_, so that closing the file is silent, too
  Hdf5Handle file_;
};

}  // namespace shardproof
