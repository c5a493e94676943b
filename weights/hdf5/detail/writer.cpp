#include "weights/hdf5/detail/writer.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "weights/base/detail/replace_file.h"
#include "weights/hdf5/detail/f16_type.h"
#include "weights/hdf5/detail/handle.h"
#include "weights/hdf5/detail/image.h"
#include "weights/hdf5/detail/reader.h"

namespace shardproof {
namespace {

constexpr hsize_t kChunkBytes = hsize_t{1} << 20;

/// The HDF5 type of an element, in the file and in memory, which are both little-endian.
Hdf5Handle type_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::f64:
      return {H5Tcopy(H5T_IEEE_F64LE), H5Tclose};
    case NumberFormat::f32:
      return {H5Tcopy(H5T_IEEE_F32LE), H5Tclose};
    case NumberFormat::f16:
      return f16_type(H5T_IEEE_F32LE);
    case NumberFormat::bf16:
      return {H5Tcopy(H5T_STD_U16LE), H5Tclose};
    case NumberFormat::f8_e4m3:
    case NumberFormat::f8_e5m2:
      return {H5Tcopy(H5T_STD_U8LE), H5Tclose};
    case NumberFormat::int8:
      return {H5Tcopy(H5T_STD_I8LE), H5Tclose};
    case NumberFormat::int32:
      return {H5Tcopy(H5T_STD_I32LE), H5Tclose};
    case NumberFormat::int64:
      return {H5Tcopy(H5T_STD_I64LE), H5Tclose};
  }
  return {H5I_INVALID_HID, H5Tclose};
}

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

/// Writes one attribute; returns false if HDF5 refuses.
bool put_attribute(hid_t object, const char* name, hid_t in_file, hid_t in_memory,
                   const Hdf5Handle& space, const void* value) {
  const Hdf5Handle attribute(
      H5Acreate2(object, name, in_file, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute && H5Awrite(attribute.get(), in_memory, value) >= 0;
}

Hdf5Handle scalar() { return {H5Screate(H5S_SCALAR), H5Sclose}; }

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
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  writer_.need(type && H5Tset_size(type.get(), std::max<std::size_t>(1, value.size())) >= 0 &&
               put_attribute(handle_->get(), name, type.get(), type.get(), scalar(),
                             value.empty() ? "" : value.data()));
}

void Hdf5Writer::Object::put(const char* name, int value) const {
  const Hdf5Silence silence;
  writer_.need(
      put_attribute(handle_->get(), name, H5T_STD_I32LE, H5T_NATIVE_INT, scalar(), &value));
}

void Hdf5Writer::Object::put(const char* name, double value) const {
  const Hdf5Silence silence;
  writer_.need(
      put_attribute(handle_->get(), name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, scalar(), &value));
}

void Hdf5Writer::Object::put(const char* name, const std::vector<std::int64_t>& values) const {
  const Hdf5Silence silence;
  const hsize_t size = values.size();
  const Hdf5Handle space(H5Screate_simple(1, &size, nullptr), H5Sclose);
  writer_.need(
      put_attribute(handle_->get(), name, H5T_STD_I64LE, H5T_NATIVE_INT64, space, values.data()));
}

void Hdf5Writer::Object::put_text(const char* name, std::string_view value) const {
  const Hdf5Silence silence;
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  const std::string ended(value);
  const char* const text = ended.c_str();
  writer_.need(type && H5Tset_size(type.get(), H5T_VARIABLE) >= 0 &&
               H5Tset_cset(type.get(), H5T_CSET_UTF8) >= 0 &&
               put_attribute(handle_->get(), name, type.get(), type.get(), scalar(), &text));
}

void Hdf5Writer::Object::close() {
  const Hdf5Silence silence;
  writer_.need(handle_->close());
}

Hdf5Writer::Hdf5Writer(std::filesystem::path target, std::string label)
    : target_(std::move(target)), label_(std::move(label)) {
  const Hdf5Silence silence;
  replacement_ = std::make_unique<Replacement>(target_, label_);
  image_ = std::make_unique<Hdf5Image>(replacement_->file());
  need(image_->file() >= 0);
}

Hdf5Writer::~Hdf5Writer() = default;

void Hdf5Writer::need(bool held) const {
  if (held) return;
  const int error = image_->error();
  throw Error(label_, fmt::format("{:?}: {}", target_.string(),
                                  error != 0 ? std::generic_category().message(error)
                                             : last_hdf5_failure().reason));
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

Hdf5Writer::Object Hdf5Writer::create(const Object& parent, const std::string& name,
                                      const Shape& shape, const Elements& data,
                                      Storage storage) const {
  const Hdf5Silence silence;
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  const int rank = static_cast<int>(dims.size());
  const Hdf5Handle space(H5Screate_simple(rank, dims.data(), nullptr), H5Sclose);
  const Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  need(untimed(options));
  if (storage == Storage::checked) {
    const std::vector<hsize_t> chunk =
        chunk_of(dims, static_cast<std::size_t>(bytes_of(data.format)));
    need(H5Pset_chunk(options.get(), rank, chunk.data()) >= 0 &&
         H5Pset_fletcher32(options.get()) >= 0);
  }
  const Hdf5Handle type = type_of(data.format);
  need(static_cast<bool>(type));
  Object object(*this, Hdf5Handle(H5Dcreate2(parent.handle_->get(), name.c_str(), type.get(),
                                             space.get(), H5P_DEFAULT, options.get(), H5P_DEFAULT),
                                  H5Dclose));
  need(data.bytes.empty() || H5Dwrite(object.handle_->get(), type.get(), H5S_ALL, H5S_ALL,
                                      H5P_DEFAULT, data.bytes.data()) >= 0);
  return object;
}

bool Hdf5Writer::has(const std::string& name, const Shape& shape, const Elements& data) const {
  const Hdf5Silence silence;
  if (H5Lexists(image_->file(), name.c_str(), H5P_DEFAULT) <= 0) return false;
  const std::string what = fmt::format("{:?}", target_.string());
  const Hdf5Object root({image_->file(), [](hid_t) -> herr_t { return 0; }}, label_, what);
  const Hdf5Dataset held(root.object(name, what));
  const Hdf5Handle type = type_of(data.format);
  if (H5Tequal(held.type(), type.get()) <= 0 ||
      !std::equal(held.extents().begin(), held.extents().end(), shape.begin(), shape.end(),
                  [](hsize_t a, std::int64_t b) { return std::cmp_equal(a, b); }))
    return false;
  std::vector<std::byte> bytes(data.bytes.size());
  const hsize_t rows = held.extents().empty() ? 1 : held.extents().front();
  need(bytes.empty() || !held.read_rows(0, rows, type.get(), bytes.data()));
  return std::equal(bytes.begin(), bytes.end(), data.bytes.begin());
}

void Hdf5Writer::write() {
  const Hdf5Silence silence;
  const std::span<const char> image = image_->close();
  need(!image.empty());
  replacement_->commit(image.size());
}

}  // namespace shardproof
