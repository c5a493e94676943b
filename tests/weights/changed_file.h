#pragma once

// Weights files that are then changed, as a fault or an attacker would.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "weights/hdf5/detail/handle.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"
#include "weights/storage/store.h"

namespace shardproof {

inline const char* const kModel = "palm-tiny,layers=1,E=6,F=5,H=2,Q=2,V=7,positions=4";

inline Weights small() { return generate_weights(parse_model(kModel), 1); }

// Codes of every value there is, and scales of all sizes.
inline Weights int8_of(const ModelConfig& config, std::uint64_t seed) {
  const Weights whole = generate_weights(config, seed);
  std::map<std::string, Tensor> tensors;
  for (const WeightSpec& spec : weight_specs(config, NumberFormat::int8)) {
    if (!spec.int8 && !spec.scale) {
      tensors.emplace(spec.name, *whole.at(spec.name));
      continue;
    }
    Tensor made(spec.shape);
    for (std::size_t i = 0; i < made.data.size(); ++i) {
      const auto words = counter_random(seed, spec.name, i);
      made.data[i] = spec.scale ? std::ldexp(1.0F + static_cast<float>(words[0] % 1000),
                                             -static_cast<int>(words[1] % 140))
                                : static_cast<float>(words[0] % 255) - 127.0F;
    }
    tensors.emplace(spec.name, std::move(made));
  }
  return {config, std::move(tensors), NumberFormat::int8};
}
inline Weights small_int8(const std::string& more = "") {
  return int8_of(parse_model(kModel + more), 1);
}

using Change = std::function<void(hid_t)>;

// A saved file, changed through the HDF5 library by `change(file id)`, then loaded: what is
// refused, in one line.
inline std::string load_changed(const Change& change, const Weights& weights = small()) {
  const Folder folder;
  const fs::path path = folder / "w.h5";
  save_weights(weights, path);
  {
    Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    EXPECT_TRUE(file);
    change(file.get());
  }
  const std::string message = message_of([&] { load_weights(path); });
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}
inline std::string label_of_changed(const Change& change, const Weights& weights = small()) {
  const std::string message = load_changed(change, weights);
  return message.substr(0, message.find(':'));
}

inline void put_text(hid_t object, const char* name, const std::string& value,
                     bool variable = false) {
  if (H5Aexists(object, name) > 0) H5Adelete(object, name);
  Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), variable ? H5T_VARIABLE : std::max<std::size_t>(1, value.size()));
  Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  Hdf5Handle attribute(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                       H5Aclose);
  const char* text = value.c_str();
  ASSERT_GE(
      H5Awrite(attribute.get(), type.get(), variable ? static_cast<const void*>(&text) : text), 0);
}

inline void put_version(hid_t file, int version, hid_t type = H5T_STD_I64BE) {
  if (H5Aexists(file, "version") > 0) H5Adelete(file, "version");
  Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  Hdf5Handle attribute(H5Acreate2(file, "version", type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                       H5Aclose);
  ASSERT_GE(H5Awrite(attribute.get(), H5T_NATIVE_INT, &version), 0);
}

/// A dataset's numbers, and what is done to them.
inline void change_numbers(hid_t file, const char* name,
                           const std::function<void(std::vector<double>&)>& to) {
  const Hdf5Handle data(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose);
  ASSERT_TRUE(data);
  const Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
  std::vector<double> all(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())));
  ASSERT_GE(H5Dread(data.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()), 0);
  to(all);
  ASSERT_GE(H5Dwrite(data.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()), 0);
}

/// A dataset, new or in place of another of that name, without numbers yet.
inline Hdf5Handle put_empty(hid_t file, const char* name, hid_t type,
                            const std::vector<hsize_t>& dims, const char* letters,
                            const Hdf5Handle& options = {H5P_DEFAULT, [](hid_t) { return 0; }},
                            const hsize_t* most = nullptr) {
  if (H5Lexists(file, name, H5P_DEFAULT) > 0) H5Ldelete(file, name, H5P_DEFAULT);
  const Hdf5Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), most),
                         H5Sclose);
  Hdf5Handle data(
      H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, options.get(), H5P_DEFAULT), H5Dclose);
  EXPECT_TRUE(data) << name;
  put_text(data.get(), "dims", letters);
  return data;
}

/// The same, of ones.
inline void put_ones(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& dims,
                     const char* letters) {
  put_empty(file, name, type, dims, letters);
  change_numbers(file, name,
                 [](std::vector<double>& all) { std::fill(all.begin(), all.end(), 1.0); });
}

inline Hdf5Handle dataset_options() { return {H5Pcreate(H5P_DATASET_CREATE), H5Pclose}; }

}  // namespace shardproof
