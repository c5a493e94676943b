#pragma once

// HDF5 traces as others write them: every type, way of storing and kind of attribute.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/weights/folder.h"
#include "weights/hdf5/detail/handle.h"

namespace shardproof::dump {

class Hdf5File {
 public:
  /// How a dataset is stored: in chunks if any are said.
  struct Storage {
    std::vector<hsize_t> chunk{};
    bool gzip = false;
    bool shuffle = false;
    bool fletcher32 = false;
  };

  /// With what makes it a trace, unless not; in the newest format that HDF5 has, unless in the
  /// oldest, as h5py writes.
  explicit Hdf5File(const fs::path& path, bool is_trace = true, bool newest = false)
      : file_(created(path, newest)) {
    EXPECT_TRUE(file_);
    if (!is_trace) return;
    text("/", "format", "shardproof trace");
    number("/", "version", H5T_STD_I32LE, H5T_NATIVE_INT, 1);
  }

  hid_t id() const { return file_.get(); }

  Hdf5Handle open(const std::string& path) const {
    return {H5Oopen(file_.get(), path.c_str(), H5P_DEFAULT), H5Oclose};
  }

  void text(const std::string& path, const char* name, const std::string& value,
            bool variable = false, H5T_cset_t set = H5T_CSET_UTF8,
            H5T_str_t pad = H5T_STR_NULLPAD) const {
    const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.get(), variable ? H5T_VARIABLE : std::max<std::size_t>(1, value.size()));
    H5Tset_cset(type.get(), set);
    if (!variable) H5Tset_strpad(type.get(), pad);
    const char* const pointer = value.c_str();
    attribute(path, name, type.get(), type.get(), {},
              variable ? static_cast<const void*>(&pointer) : pointer);
  }

  template <class T>
  void number(const std::string& path, const char* name, hid_t in_file, hid_t in_memory, T value,
              const std::vector<hsize_t>& dims = {}) const {
    const std::vector<T> values(64, value);
    attribute(path, name, in_file, in_memory, dims, values.data());
  }

  void attribute(const std::string& path, const char* name, hid_t in_file, hid_t in_memory,
                 const std::vector<hsize_t>& dims, const void* values) const {
    const Hdf5Handle object = open(path);
    const Hdf5Handle space = space_of(dims);
    const Hdf5Handle made(
        H5Acreate2(object.get(), name, in_file, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    ASSERT_TRUE(made);
    ASSERT_GE(H5Awrite(made.get(), in_memory, values), 0);
  }

  void group(const std::string& path) const {
    const Hdf5Handle made(
        H5Gcreate2(file_.get(), path.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    ASSERT_TRUE(made);
  }

  /// Of elements of `type`, given as the file has them; groups above it are made.
  void dataset(const std::string& path, hid_t type, const std::vector<hsize_t>& dims,
               const void* elements, const Storage& storage) const {
    const Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    if (!storage.chunk.empty())
      H5Pset_chunk(options.get(), static_cast<int>(storage.chunk.size()), storage.chunk.data());
    if (storage.shuffle) H5Pset_shuffle(options.get());
    if (storage.gzip) H5Pset_deflate(options.get(), 6);
    if (storage.fletcher32) H5Pset_fletcher32(options.get());
    dataset_with(path, type, dims, elements, options.get());
  }
  void dataset(const std::string& path, hid_t type, const std::vector<hsize_t>& dims,
               const void* elements) const {
    dataset(path, type, dims, elements, Storage{});
  }

  void dataset_with(const std::string& path, hid_t type, const std::vector<hsize_t>& dims,
                    const void* elements, hid_t options) const {
    const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(links.get(), 1);
    const Hdf5Handle space = space_of(dims);
    const Hdf5Handle made(
        H5Dcreate2(file_.get(), path.c_str(), type, space.get(), links.get(), options, H5P_DEFAULT),
        H5Dclose);
    ASSERT_TRUE(made) << path;
    if (elements != nullptr) {
      ASSERT_GE(H5Dwrite(made.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, elements), 0);
    }
  }

  void floats(const std::string& path, const std::vector<hsize_t>& dims,
              const std::vector<float>& values) const {
    dataset(path, H5T_IEEE_F32LE, dims, values.data());
  }

 private:
  static Hdf5Handle created(const fs::path& path, bool newest) {
    const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    if (newest) H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
    return {H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose};
  }

  static Hdf5Handle space_of(const std::vector<hsize_t>& dims) {
    if (dims.empty()) return {H5Screate(H5S_SCALAR), H5Sclose};
    return {H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose};
  }

  Hdf5Handle file_;
};

inline Hdf5Handle f16_type(hid_t like = H5T_IEEE_F32LE) {
  Hdf5Handle type(H5Tcopy(like), H5Tclose);
  H5Tset_fields(type.get(), 15, 10, 5, 0, 10);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), 15);
  return type;
}

inline Hdf5Handle bool_type() {
  Hdf5Handle type(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose);
  const std::int8_t no = 0, yes = 1;
  H5Tenum_insert(type.get(), "FALSE", &no);
  H5Tenum_insert(type.get(), "TRUE", &yes);
  return type;
}

}  // namespace shardproof::dump
