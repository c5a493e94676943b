#pragma once

#include <hdf5.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/hdf5/detail/handle.h"

namespace shardproof {

/// The put_* functions write one attribute of a group or dataset and return false if HDF5 refuses.

/// Writes a fixed-length string attribute.
inline bool put_attribute(hid_t object, const char* name, std::string_view value) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  if (!type || H5Tset_size(type.get(), std::max<std::size_t>(1, value.size())) < 0) return false;
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(
      H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute && H5Awrite(attribute.get(), type.get(), value.empty() ? "" : value.data()) >= 0;
}

/// Writes a variable-length UTF-8 string attribute; `value` must not contain NUL.
inline bool put_text_attribute(hid_t object, const char* name, const std::string& value) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  if (!type || H5Tset_size(type.get(), H5T_VARIABLE) < 0 ||
      H5Tset_cset(type.get(), H5T_CSET_UTF8) < 0)
    return false;
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(
      H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  const char* const text = value.c_str();
  return attribute && H5Awrite(attribute.get(), type.get(), &text) >= 0;
}

/// Writes a 32-bit integer attribute.
inline bool put_attribute(hid_t object, const char* name, int value) {
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(
      H5Acreate2(object, name, H5T_STD_I32LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute && H5Awrite(attribute.get(), H5T_NATIVE_INT, &value) >= 0;
}

/// Writes an f64 attribute.
inline bool put_attribute(hid_t object, const char* name, double value) {
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(
      H5Acreate2(object, name, H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute && H5Awrite(attribute.get(), H5T_NATIVE_DOUBLE, &value) >= 0;
}

/// Writes an attribute of 64-bit integers; `values` must not be empty.
inline bool put_attribute(hid_t object, const char* name, const std::vector<std::int64_t>& values) {
  const hsize_t size = values.size();
  const Hdf5Handle space(H5Screate_simple(1, &size, nullptr), H5Sclose);
  const Hdf5Handle attribute(
      H5Acreate2(object, name, H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute && H5Awrite(attribute.get(), H5T_NATIVE_INT64, values.data()) >= 0;
}

}  // namespace shardproof
