#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof {

class Hdf5Handle;
class Hdf5Image;

/// Builds an HDF5 file in memory and writes it to disk whole, or not at all. The file holds no
/// times, so that equal content gives equal bytes. Throws Error(`label`, ...), naming target and
/// reason, where HDF5 or the disk fails; HDF5 prints nothing.
class Hdf5Writer {
 public:
  /// The root, a group or a dataset. All but the root must be destroyed before write().
  class Object {
   public:
    Object(Object&&) noexcept;
    ~Object();

    /// Write one attribute: a fixed-length string, an int32, an f64, or a non-empty list of int64.
    void put(const char* name, std::string_view value) const;
    void put(const char* name, int value) const;
    void put(const char* name, double value) const;
    void put(const char* name, const std::vector<std::int64_t>& values) const;
    /// Writes a variable-length UTF-8 string attribute.
    void put_text(const char* name, std::string_view value) const;

    /// Closes now, so that a failure is thrown.
    void close();

   private:
    friend class Hdf5Writer;
    Object(const Hdf5Writer& writer, Hdf5Handle handle);

    const Hdf5Writer& writer_;
    std::unique_ptr<Hdf5Handle> handle_;
  };

  /// Storage of a dataset: contiguous, or in chunks of at most 1 MiB, each with a Fletcher32
  /// checksum.
  enum class Storage { plain, checked };

  Hdf5Writer(std::filesystem::path target, std::string label);
  ~Hdf5Writer();

  Object root() const;
  Object group(const Object& parent, const std::string& name) const;
  /// Writes a row-major dataset of little-endian f32, f64, int8 or int32.
  Object dataset(const Object& parent, const std::string& name, const Shape& shape,
                 std::span<const float> data, Storage storage = Storage::plain) const;
  Object dataset(const Object& parent, const std::string& name, const Shape& shape,
                 std::span<const double> data, Storage storage = Storage::plain) const;
  Object dataset(const Object& parent, const std::string& name, const Shape& shape,
                 std::span<const std::int8_t> data, Storage storage = Storage::plain) const;
  Object dataset(const Object& parent, const std::string& name, const Shape& shape,
                 std::span<const std::int32_t> data, Storage storage = Storage::plain) const;

  /// Returns whether the root has a dataset of this name, type and shape with exactly these bits.
  bool holds(const std::string& name, const Shape& shape, std::span<const float> data) const;
  bool holds(const std::string& name, const Shape& shape, std::span<const std::int32_t> data) const;

  /// Closes the file and writes it to disk (weights/base/detail/replace_file.h). Call it once.
  void write();

 private:
  template <class T>
  Object create(const Object& parent, const std::string& name, const Shape& shape,
                std::span<const T> data, Storage storage) const;
  template <class T>
  bool has(const std::string& name, const Shape& shape, std::span<const T> data) const;
  void need(bool held) const;

  std::filesystem::path target_;
  std::string label_;
  std::unique_ptr<Hdf5Image> image_;
};

}  // namespace shardproof
