#include "weights/hdf5/detail/reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <system_error>
#include <utility>

#include "weights/hdf5/detail/inflation.h"

namespace shardproof {

namespace fs = std::filesystem;

// ---- the file ----

Hdf5Reader::Hdf5Reader(const fs::path& path, std::string label)
    : path_(path.string()), label_(std::move(label)), file_(open()) {}

void Hdf5Reader::refuse(std::string_view label, std::string_view reason) const {
  throw Error(label, fmt::format("{:?} {}", path_, reason));
}

void Hdf5Reader::need(bool held) const {
  if (!held) refuse(label_, "cannot be read: " + last_hdf5_failure().reason);
}

Hdf5Handle Hdf5Reader::open() {
  std::error_code failed;
  const fs::file_status status = fs::status(path_, failed);
  if (!fs::exists(status)) refuse(label_, failed ? failed.message() : "does not exist");
  if (!fs::is_regular_file(status))
    refuse(label_, "is not a regular file: HDF5 does not read a stream");
  size_ = fs::file_size(path_, failed);
  if (failed) refuse(label_, failed.message());
  if (::access(path_.c_str(), R_OK) != 0) refuse(label_, "cannot be read: permission denied");
  Hdf5Handle file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file) refuse(label_, "is not an HDF5 file, or is truncated: " + last_hdf5_failure().reason);
  return file;
}

bool Hdf5Reader::has(const char* attribute) const { return H5Aexists(file_.get(), attribute) > 0; }

std::optional<std::string> Hdf5Reader::text(const char* attribute) const {
  return text_of(file_.get(), attribute);
}

std::optional<std::string> Hdf5Reader::text_of(hid_t object, const char* name) const {
  if (H5Aexists(object, name) <= 0) return std::nullopt;
  const Hdf5Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  need(static_cast<bool>(attribute));
  const Hdf5Handle type(H5Aget_type(attribute.get()), H5Tclose);
  const Hdf5Handle space(H5Aget_space(attribute.get()), H5Sclose);
  need(type && space);
  if (H5Tget_class(type.get()) != H5T_STRING || H5Sget_simple_extent_npoints(space.get()) != 1)
    return std::nullopt;
  std::string out;
  if (H5Tis_variable_str(type.get()) > 0) {
    char* value = nullptr;
    need(H5Aread(attribute.get(), type.get(), &value) >= 0);
    if (value != nullptr) out.assign(value, ::strnlen(value, kLongestText + 1));
    H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, &value);
  } else {
    const std::size_t size = H5Tget_size(type.get());
    if (size > kLongestText) refuse(label_, fmt::format("has a {} of {} bytes", name, size));
    std::string value(size, '\0');
    need(H5Aread(attribute.get(), type.get(), value.data()) >= 0);
    out = value.substr(0, value.find('\0'));
  }
  if (out.size() > kLongestText)
    refuse(label_, fmt::format("has a {} of more than {} bytes", name, kLongestText));
  return out;
}

std::optional<std::int64_t> Hdf5Reader::integer(const char* name) const {
  if (!has(name)) return std::nullopt;
  const Hdf5Handle attribute(H5Aopen(file_.get(), name, H5P_DEFAULT), H5Aclose);
  need(static_cast<bool>(attribute));
  const Hdf5Handle type(H5Aget_type(attribute.get()), H5Tclose);
  const Hdf5Handle space(H5Aget_space(attribute.get()), H5Sclose);
  need(type && space);
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Sget_simple_extent_npoints(space.get()) != 1)
    return std::nullopt;
  std::int64_t value = 0;
  need(H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) >= 0);
  return value;
}

std::vector<Hdf5Reader::Link> Hdf5Reader::links() const {
  std::vector<Link> found;
  const auto visit = [](hid_t, const char* name, const H5L_info_t* link, void* out) -> herr_t {
    static_cast<std::vector<Link>*>(out)->push_back({name, link->type == H5L_TYPE_HARD});
    return 0;
  };
  // Native order: HDF5 1.10 crashes on corrupt metadata when it sorts.
  need(H5Literate(file_.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, visit, &found) >= 0);
  return found;
}

std::optional<Hdf5Reader::Dataset> Hdf5Reader::dataset(const std::string& name) const {
  Hdf5Handle found(H5Oopen(file_.get(), name.c_str(), H5P_DEFAULT), H5Oclose);
  need(static_cast<bool>(found));
  if (H5Iget_type(found.get()) != H5I_DATASET) return std::nullopt;
  return Dataset(*this, std::move(found));
}

// ---- a dataset ----

Hdf5Reader::Dataset::Dataset(const Hdf5Reader& file, Hdf5Handle handle)
    : file_(file), handle_(std::move(handle)) {}

std::vector<std::uint64_t> Hdf5Reader::Dataset::shape() const {
  const Hdf5Handle space(H5Dget_space(handle_.get()), H5Sclose);
  file_.need(static_cast<bool>(space));
  std::vector<hsize_t> found;
  if (H5Sget_simple_extent_type(space.get()) == H5S_SIMPLE) {
    const int rank = H5Sget_simple_extent_ndims(space.get());
    file_.need(rank >= 0);
    found.resize(static_cast<std::size_t>(rank));
    file_.need(H5Sget_simple_extent_dims(space.get(), found.data(), nullptr) >= 0);
  }
  return {found.begin(), found.end()};
}

std::optional<std::string> Hdf5Reader::Dataset::text(const char* name) const {
  return file_.text_of(handle_.get(), name);
}

bool Hdf5Reader::Dataset::is_f32() const {
  const Hdf5Handle type(H5Dget_type(handle_.get()), H5Tclose);
  file_.need(static_cast<bool>(type));
  return H5Tequal(type.get(), H5T_IEEE_F32LE) > 0;
}

bool Hdf5Reader::Dataset::is_int8() const {
  const Hdf5Handle type(H5Dget_type(handle_.get()), H5Tclose);
  file_.need(static_cast<bool>(type));
  // A single byte may state either byte order. H5Tequal also checks the bits' position: HDF5 would
  // read beyond the element of a type that states otherwise.
  return H5Tequal(type.get(), H5T_STD_I8LE) > 0 || H5Tequal(type.get(), H5T_STD_I8BE) > 0;
}

std::size_t Hdf5Reader::Dataset::element_bytes() const {
  const Hdf5Handle type(H5Dget_type(handle_.get()), H5Tclose);
  file_.need(static_cast<bool>(type));
  return H5Tget_size(type.get());
}

Hdf5Handle Hdf5Reader::Dataset::options() const {
  Hdf5Handle options(H5Dget_create_plist(handle_.get()), H5Pclose);
  file_.need(static_cast<bool>(options));
  return options;
}

bool Hdf5Reader::Dataset::is_inside() const {
  const Hdf5Handle how = options();
  const H5D_layout_t layout = H5Pget_layout(how.get());
  const bool plain = layout == H5D_CHUNKED || layout == H5D_CONTIGUOUS || layout == H5D_COMPACT;
  return plain && H5Pget_external_count(how.get()) == 0;
}

std::uint64_t Hdf5Reader::Dataset::stored_bytes() const {
  return H5Dget_storage_size(handle_.get());
}

std::vector<std::uint64_t> Hdf5Reader::Dataset::chunk() const {
  const Hdf5Handle how = options();
  if (H5Pget_layout(how.get()) != H5D_CHUNKED) return {};
  std::vector<hsize_t> chunk(shape().size());
  file_.need(H5Pget_chunk(how.get(), static_cast<int>(chunk.size()), chunk.data()) >= 0);
  return {chunk.begin(), chunk.end()};
}

std::string Hdf5Reader::Dataset::inflation_fault(const Shape& shape) const {
  const Hdf5Handle how = options();
  if (H5Pget_layout(how.get()) != H5D_CHUNKED) return "";
  return unbounded_inflation(handle_.get(), how.get(), shape, element_bytes());
}

std::optional<Hdf5Failure> Hdf5Reader::Dataset::read(std::span<float> out) const {
  if (H5Dread(handle_.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()) >= 0)
    return std::nullopt;
  return last_hdf5_failure();
}

}  // namespace shardproof
