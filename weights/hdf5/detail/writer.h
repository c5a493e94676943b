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

/// An HDF5 file that is built in memory and comes to stand on the disk whole, or not at all. It
/// holds no times, so that equal content is equal bytes. What HDF5 or the disk refuses is thrown as
/// Error(`label`, ...), naming the target and the reason; HDF5 prints nothing.
class Hdf5Writer {
 public:
  /// The root, a group or a dataset. All but the root must be gone before the file is written.
  class Object {
   public:
    Object(Object&&) noexcept;
    ~Object();

    /// Each writes one attribute: a string of fixed length, an int32, an f64, int64s (not none).
    void put(const char* name, std::string_view value) const;
    void put(const char* name, int value) const;
    void put(const char* name, double value) const;
    void put(const char* name, const std::vector<std::int64_t>& values) const;
    /// A string of variable length, UTF-8.
    void put_text(const char* name, std::string_view value) const;

    /// Closes now, which may fail.
    void close();

   private:
    friend class Hdf5Writer;
    Object(const Hdf5Writer& writer, Hdf5Handle handle);

    const Hdf5Writer& writer_;
    std::unique_ptr<Hdf5Handle> handle_;
  };

  /// How a dataset lies in the file: in one piece, or in chunks of at most 1 MiB, each with a
  /// Fletcher32 checksum.
  enum class Storage { plain, checked };

  Hdf5Writer(std::filesystem::path target, std::string label);
  ~Hdf5Writer();

  Object root() const;
  Object group(const Object& parent, const std::string& name) const;
  /// A dataset of little-endian f32, f64, int8 or int32, row-major.
  Object dataset(const Object& parent, const std::string& name, const Shape& shape,
                 std::span<const float> data, Storage storage = Storage::plain) const;
  Object dataset(const Object& parent, const std::string& name, const Shape& shape,
                 std::span<const double> data, Storage storage = Storage::plain) const;
  Object dataset(const Object& parent, const std::string& name, const Shape& shape,
                 std::span<const std::int8_t> data, Storage storage = Storage::plain) const;
  Object dataset(const Object& parent, const std::string& name, const Shape& shape,
                 std::span<const std::int32_t> data, Storage storage = Storage::plain) const;

  /// Whether the root has a dataset of this name, type and shape that holds just these bits.
  bool holds(const std::string& name, const Shape& shape, std::span<const float> data) const;
  bool holds(const std::string& name, const Shape& shape, std::span<const std::int32_t> data) const;

  /// Closes the file and writes it to the disk (weights/base/detail/replace_file.h); to be called
  /// once.
  void write();

 private:
  template <class T>
  Object made(const Object& parent, const std::string& name, const Shape& shape,
              std::span<const T> data, Storage storage) const;
  template <class T>
  bool has(const std::string& name, const Shape& shape, std::span<const T> data) const;
  void need(bool held) const;

  std::filesystem::path target_;
  std::string label_;
  std::unique_ptr<Hdf5Image> image_;
};

}  // namespace shardproof
