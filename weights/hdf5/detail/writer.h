#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/number_format.h"
#include "weights/base/tensor.h"

namespace shardproof {

class Hdf5Handle;
class Hdf5Image;
class Replacement;

/// Builds an HDF5 file, which takes its target's place whole, or not at all; until then it has no
/// name, and memory holds what the system keeps of files. The file holds no
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
  /// Writes a row-major dataset of little-endian elements; those of bf16 and f8 stand as unsigned
  /// integers.
  Object dataset(const Object& parent, const std::string& name, const Shape& shape,
                 NumberFormat format, std::span<const std::byte> bytes) const {
    return create(parent, name, shape, {format, bytes}, Storage::plain);
  }
  /// The same of f32, f64, int8 or int32; `data` is contiguous.
  template <class Data>
  Object dataset(const Object& parent, const std::string& name, const Shape& shape,
                 const Data& data, Storage storage = Storage::plain) const {
    return create(parent, name, shape, elements(std::span<const typename Data::value_type>(data)),
                  storage);
  }

  /// Returns whether the root has a dataset of this name, type and shape with exactly these bits.
  template <class Data>
  bool holds(const std::string& name, const Shape& shape, const Data& data) const {
    return has(name, shape, elements(std::span<const typename Data::value_type>(data)));
  }

  /// Closes the file and puts it in its place (weights/base/detail/replace_file.h). Call it once.
  void write();

 private:
  struct Elements {
    NumberFormat format;
    std::span<const std::byte> bytes;
  };

  template <class T, std::size_t n>
  static Elements elements(std::span<const T, n> data) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                  std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::int32_t>);
    return {std::is_same_v<T, float>         ? NumberFormat::f32
            : std::is_same_v<T, double>      ? NumberFormat::f64
            : std::is_same_v<T, std::int8_t> ? NumberFormat::int8
                                             : NumberFormat::int32,
            std::as_bytes(data)};
  }

  Object create(const Object& parent, const std::string& name, const Shape& shape,
                const Elements& data, Storage storage) const;
  bool has(const std::string& name, const Shape& shape, const Elements& data) const;
  void need(bool held) const;

  std::filesystem::path target_;
  std::string label_;
  std::unique_ptr<Replacement> replacement_;
  std::unique_ptr<Hdf5Image> image_;
};

}  // namespace shardproof
