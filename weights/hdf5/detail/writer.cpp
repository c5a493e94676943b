#include "weights/hdf5/detail/writer.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "weights/base/detail/replace_file.h"
#include "weights/hdf5/detail/attribute.h"
#include "weights/hdf5/detail/handle.h"
#include "weights/hdf5/detail/image.h"

namespace shardproof {
namespace {

constexpr hsize_t kChunkBytes = hsize_t{1} << 20;

/// HDF5 types of an element in the file and in memory.
struct ElementType {
  hid_t in_file, in_memory;
};
ElementType type_of(float) { return {H5T_IEEE_F32LE, H5T_NATIVE_FLOAT}; }
ElementType type_of(double) { return {H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE}; }
ElementType type_of(std::int8_t) { return {H5T_STD_I8LE, H5T_NATIVE_INT8}; }
ElementType type_of(std::int32_t) { return {H5T_STD_I32LE, H5T_NATIVE_INT32}; }

/// Returns the chunk extents: whole minor dims while they fit, then part of the next.
std::vector<hsize_t> chunk_of(const std::vector<hsize_t>& dims, std::size_t element) {
  std::vector<hsize_t> chunk(dims.size(), 1);
  hsize_t left = kChunkBytes / element;
  for (std::size_t i = dims.size(); i-- > 0;) {
    chunk[i] = std::min(dims[i], left);
    left /= chunk[i];
  }
  return chunk;
}

bool untimed(const Hdf5Handle& options) {
  return options && H5Pset_obj_track_times(options.get(), false) >= 0;
}

}  // namespace

Hdf5Writer::Object::Object(const Hdf5Writer& writer, Hdf5Handle handle)
    : writer_(writer), handle_(std::make_unique<Hdf5Handle>(std::move(handle))) {
  writer_.need(static_cast<bool>(*handle_));
}

Hdf5Writer::Object::Object(Object&&) noexcept = default;
Hdf5Writer::Object::~Object() = default;

void Hdf5Writer::Object::put(const char* name, std::string_view value) const {
  const Hdf5Silence silence;
  writer_.need(put_attribute(handle_->get(), name, value));
}

void Hdf5Writer::Object::put(const char* name, int value) const {
  const Hdf5Silence silence;
  writer_.need(put_attribute(handle_->get(), name, value));
}

void Hdf5Writer::Object::put(const char* name, double value) const {
  const Hdf5Silence silence;
  writer_.need(put_attribute(handle_->get(), name, value));
}

void Hdf5Writer::Object::put(const char* name, const std::vector<std::int64_t>& values) const {
  const Hdf5Silence silence;
  writer_.need(put_attribute(handle_->get(), name, values));
}

void Hdf5Writer::Object::put_text(const char* name, std::string_view value) const {
  const Hdf5Silence silence;
  writer_.need(put_text_attribute(handle_->get(), name, std::string(value)));
}

void Hdf5Writer::Object::close() {
  const Hdf5Silence silence;
  writer_.need(handle_->close());
}

Hdf5Writer::Hdf5Writer(std::filesystem::path target, std::string label)
    : target_(std::move(target)), label_(std::move(label)) {
  const Hdf5Silence silence;
  image_ = std::make_unique<Hdf5Image>();
  need(image_->file() >= 0);
}

Hdf5Writer::~Hdf5Writer() = default;

void Hdf5Writer::need(bool held) const {
  if (!held)
    throw Error(label_, fmt::format("{:?}: {}", target_.string(), last_hdf5_failure().reason));
}

Hdf5Writer::Object Hdf5Writer::root() const {
  // The file's own identifier, which the image closes.
  return {*this, Hdf5Handle(image_->file(), [](hid_t) -> herr_t { return 0; })};
}

Hdf5Writer::Object Hdf5Writer::group(const Object& parent, const std::string& name) const {
  const Hdf5Silence silence;
  const Hdf5Handle options(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  need(untimed(options));
  return {*this, Hdf5Handle(H5Gcreate2(parent.handle_->get(), name.c_str(), H5P_DEFAULT,
                                       options.get(), H5P_DEFAULT),
                            H5Gclose)};
}

template <class T>
Hdf5Writer::Object Hdf5Writer::create(const Object& parent, const std::string& name,
                                      const Shape& shape, std::span<const T> data,
                                      Storage storage) const {
  const Hdf5Silence silence;
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  const int rank = static_cast<int>(dims.size());
  const Hdf5Handle space(H5Screate_simple(rank, dims.data(), nullptr), H5Sclose);
  const Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  need(untimed(options));
  if (storage == Storage::checked) {
    const std::vector<hsize_t> chunk = chunk_of(dims, sizeof(T));
    need(H5Pset_chunk(options.get(), rank, chunk.data()) >= 0 &&
         H5Pset_fletcher32(options.get()) >= 0);
  }
  const ElementType type = type_of(T{});
  Object object(*this, Hdf5Handle(H5Dcreate2(parent.handle_->get(), name.c_str(), type.in_file,
                                             space.get(), H5P_DEFAULT, options.get(), H5P_DEFAULT),
                                  H5Dclose));
  need(data.empty() || H5Dwrite(object.handle_->get(), type.in_memory, H5S_ALL, H5S_ALL,
                                H5P_DEFAULT, data.data()) >= 0);
  return object;
}

Hdf5Writer::Object Hdf5Writer::dataset(const Object& parent, const std::string& name,
                                       const Shape& shape, std::span<const float> data,
                                       Storage storage) const {
  return create(parent, name, shape, data, storage);
}

Hdf5Writer::Object Hdf5Writer::dataset(const Object& parent, const std::string& name,
                                       const Shape& shape, std::span<const double> data,
                                       Storage storage) const {
  return create(parent, name, shape, data, storage);
}

Hdf5Writer::Object Hdf5Writer::dataset(const Object& parent, const std::string& name,
                                       const Shape& shape, std::span<const std::int8_t> data,
                                       Storage storage) const {
  return create(parent, name, shape, data, storage);
}

Hdf5Writer::Object Hdf5Writer::dataset(const Object& parent, const std::string& name,
                                       const Shape& shape, std::span<const std::int32_t> data,
                                       Storage storage) const {
  return create(parent, name, shape, data, storage);
}

template <class T>
bool Hdf5Writer::has(const std::string& name, const Shape& shape, std::span<const T> data) const {
  const Hdf5Silence silence;
  if (H5Lexists(image_->file(), name.c_str(), H5P_DEFAULT) <= 0) return false;
  const Hdf5Handle set(H5Dopen2(image_->file(), name.c_str(), H5P_DEFAULT), H5Dclose);
  need(static_cast<bool>(set));
  const Hdf5Handle space(H5Dget_space(set.get()), H5Sclose);
  const Hdf5Handle type(H5Dget_type(set.get()), H5Tclose);
  need(space && type);
  const ElementType element = type_of(T{});
  std::vector<hsize_t> dims(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.get())));
  if (!dims.empty()) H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
  if (H5Tequal(type.get(), element.in_file) <= 0 ||
      !std::equal(dims.begin(), dims.end(), shape.begin(), shape.end(),
                  [](hsize_t a, std::int64_t b) { return a == static_cast<hsize_t>(b); }))
    return false;
  std::vector<T> held(data.size());
  need(data.empty() ||
       H5Dread(set.get(), element.in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, held.data()) >= 0);
  return data.empty() || std::memcmp(held.data(), data.data(), data.size_bytes()) == 0;
}

bool Hdf5Writer::holds(const std::string& name, const Shape& shape,
                       std::span<const float> data) const {
  return has(name, shape, data);
}

bool Hdf5Writer::holds(const std::string& name, const Shape& shape,
                       std::span<const std::int32_t> data) const {
  return has(name, shape, data);
}

void Hdf5Writer::write() {
  const Hdf5Silence silence;
  const std::span<const char> image = image_->close();
  need(!image.empty());
  replace_file(target_, image, label_);
}

}  // namespace shardproof
