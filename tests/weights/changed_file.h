#pragma once

// Weights files that are then changed, as a fault or an attacker would.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <string>

#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "weights/hdf5/detail/handle.h"
#include "weights/storage/generator.h"
#include "weights/storage/store.h"

namespace shardproof {

inline const char* const kModel = "palm-tiny,layers=1,E=6,F=5,H=2,Q=2,V=7,positions=4";

inline Weights small() { return generate_weights(parse_model(kModel), 1); }

// A saved file, changed through the HDF5 library by `change(file id)`, then loaded.
template <class Change>
std::string load_changed(Change&& change, const Weights& weights = small()) {
  const Folder folder;
  const fs::path path = folder / "w.h5";
  save_weights(weights, path);
  {
    Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    EXPECT_TRUE(file);
    change(file.get());
  }
  return message_of([&] { load_weights(path); });
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

}  // namespace shardproof
