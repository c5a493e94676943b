#pragma once

#include <hdf5.h>

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "weights/base/tensor.h"
#include "weights/hdf5/detail/handle.h"

namespace shardproof {

/// A trace file as the HDF5 library reads it.
class TraceReader {
 public:
  explicit TraceReader(const std::filesystem::path& path)
      : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose) {}

  bool opened() const { return static_cast<bool>(file_); }

  std::set<std::string> names(const std::string& group) const {
    const Hdf5Handle at(H5Gopen2(file_.get(), group.c_str(), H5P_DEFAULT), H5Gclose);
    std::set<std::string> found;
    const auto visit = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
      static_cast<std::set<std::string>*>(out)->insert(name);
      return 0;
    };
    H5Literate(at.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, visit, &found);
    return found;
  }

  bool has(const std::string& path) const {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return H5Lexists(file_.get(), path.c_str(), H5P_DEFAULT) > 0;
    const Hdf5Handle at(H5Gopen2(file_.get(), path.substr(0, slash).c_str(), H5P_DEFAULT),
                        H5Gclose);
    return H5Lexists(at.get(), path.substr(slash + 1).c_str(), H5P_DEFAULT) > 0;
  }

  /// Where the elements of a value are that stands whole: itself, or what it is the same as.
  std::string stored(const std::string& id) const {
    const std::string same = text(id, "same_as");
    return same == "none" ? id : same;
  }

  /// Every element's bytes, and the shape.
  std::string data(const std::string& name, Shape* shape = nullptr) const {
    const Hdf5Silence silence;
    const Hdf5Handle data(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!data) return "none";
    const Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
    const Hdf5Handle type(H5Dget_type(data.get()), H5Tclose);
    std::vector<hsize_t> dims(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.get())));
    H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
    if (shape != nullptr) shape->assign(dims.begin(), dims.end());
    const auto count = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get()));
    std::string bytes(count * H5Tget_size(type.get()), '\0');
    if (count > 0) H5Dread(data.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
    return bytes;
  }

  std::string text(const std::string& object, const char* attribute) const {
    const Hdf5Silence silence;
    const Hdf5Handle at(
        H5Aopen_by_name(file_.get(), object.c_str(), attribute, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    if (!at) return "none";
    const Hdf5Handle type(H5Aget_type(at.get()), H5Tclose);
    if (H5Tis_variable_str(type.get()) <= 0 || H5Tget_cset(type.get()) != H5T_CSET_UTF8)
      return "no text of variable length";
    char* text = nullptr;
    H5Aread(at.get(), type.get(), &text);
    std::string value = text;
    H5free_memory(text);
    return value;
  }

  int number(const std::string& object, const char* attribute) const {
    const Hdf5Silence silence;
    const Hdf5Handle at(
        H5Aopen_by_name(file_.get(), object.c_str(), attribute, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    int value = -1;
    if (at) H5Aread(at.get(), H5T_NATIVE_INT, &value);
    return value;
  }

 private:
  Hdf5Handle file_;
};

}  // namespace shardproof
