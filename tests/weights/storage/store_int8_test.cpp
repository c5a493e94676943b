// Weights files of version 2, which keep int8 weights: what store_test.cpp checks of version 1, and
// what only codes and scales can have wrong.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/weights/changed_file.h"

namespace shardproof {
namespace {

/// What is wrong, of the file, after its name: "layer0.wq[0] is 3; ...".
std::string after_name(const std::string& message) {
  const auto end = message.find("w.h5\" ");
  const auto label = message.find(": ");
  if (end == std::string::npos || label == std::string::npos) return message;
  return message.substr(0, label + 2) + message.substr(end + 6);
}

TEST(StoreInt8, KeepsCodesInAByte) {
  const Folder folder;
  save_weights(small_int8(), folder / "w.h5");
  const Hdf5Handle file(H5Fopen((folder / "w.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  for (const WeightSpec& spec : weight_specs(parse_model(kModel), NumberFormat::int8)) {
    const Hdf5Handle data(H5Dopen2(file.get(), spec.name.c_str(), H5P_DEFAULT), H5Dclose);
    const Hdf5Handle type(H5Dget_type(data.get()), H5Tclose);
    EXPECT_GT(H5Tequal(type.get(), spec.int8 ? H5T_STD_I8LE : H5T_IEEE_F32LE), 0) << spec.name;
  }
  EXPECT_EQ(weights_format(NumberFormat::int8), 2);
  EXPECT_EQ(weights_format(NumberFormat::f32), 1);
}

TEST(StoreInt8, EveryVersionElseIsRefused) {
  for (int version : {0, 3, -1}) {
    const std::string message = after_name(
        load_changed([&](hid_t f) { put_version(f, version, H5T_STD_I32LE); }, small_int8()));
    EXPECT_EQ(message, "weights_version: is version " + std::to_string(version) +
                           "; legal: 1 (f32 weights), 2 (int8 weights)");
  }
}

TEST(StoreInt8, NamesEveryBadCodeAndScale) {
  const std::string code = " is -128; a code is a whole number from -127 to 127";
  const std::string scale = "; a scale is above 0", finite = "; weights must be finite";
  const struct {
    const char* name;
    std::size_t index;
    double value;
    std::string why;  ///< behind the name
  } kCases[] = {{"layer0.wq", 0, -128, "[0, 0, 0]" + code},
                {"layer0.wk_scale", 0, 0, "[0, 0] is 0" + scale},
                {"layer0.wq", 7, -128, "[1, 1, 1]" + code},
                {"layer0.w_out", 29, -128, "[4, 5]" + code},
                {"layer0.wq", 7, -127, ""},
                {"layer0.wq", 7, 127, ""},
                {"layer0.wk_scale", 1, 0, "[0, 1] is 0" + scale},
                {"layer0.wq_scale", 3, -0.0, "[1, 1] is -0" + scale},
                {"layer0.w_up_scale", 4, -0.5, "[4] is -0.5" + scale},
                {"layer0.block_out_scale", 5, HUGE_VAL, "[5] is inf" + finite},
                {"layer0.w_gate_scale", 0, NAN, "[0] is nan" + finite},
                {"layer0.wv_scale", 0, 0x1p-149, ""}};  // the least scale there is
  for (const auto& c : kCases)
    EXPECT_EQ(after_name(load_changed(
                  [&](hid_t f) {
                    change_numbers(f, c.name, [&](auto& all) { all.at(c.index) = c.value; });
                  },
                  small_int8())),
              c.why.empty() ? "" : "weights_value: " + (c.name + c.why));
}

/// What becomes of a file in which a dataset is put or, without dims, left out.
std::string refused(const Weights& weights, const char* name, hid_t type,
                    const std::vector<hsize_t>& dims, const char* letters) {
  return after_name(load_changed(
      [&](hid_t f) {
        if (dims.empty())
          H5Ldelete(f, name, H5P_DEFAULT);
        else
          put_ones(f, name, type, dims, letters);
      },
      weights));
}

TEST(StoreInt8, NamesScalesOfAnotherLengthOrBlock) {
  const auto f32 = H5T_IEEE_F32LE;
  const Weights parallel = small_int8(), serial = small_int8(",block=serial");
  const std::string must = "weights_shape: must hold layer0.";
  EXPECT_EQ(refused(parallel, "layer0.wq_scale", f32, {2, 2}, "HQ"), "");
  EXPECT_EQ(refused(parallel, "layer0.wq_scale", f32, {2, 3}, "HQ"),
            must + "wq_scale as HQ [2, 2], it is \"HQ\" [2, 3]");
  EXPECT_EQ(refused(parallel, "layer0.wq_scale", f32, {4}, "HQ"),
            must + "wq_scale as HQ [2, 2], it is \"HQ\" [4]");
  EXPECT_EQ(refused(parallel, "layer0.block_out_scale", f32, {7}, "E"),
            must + "block_out_scale as E [6], it is \"E\" [7]");
  EXPECT_EQ(refused(parallel, "layer0.block_out_scale", f32, {6}, "F"),
            must + "block_out_scale as E [6], it is \"F\" [6]");
  // A parallel block has one for its output, a serial one two.
  EXPECT_EQ(refused(parallel, "layer0.wo_scale", f32, {6}, "E"),
            "weights_name: holds \"layer0.wo_scale\", which is not a weight of its model in "
            "version 2");
  EXPECT_EQ(refused(parallel, "layer0.block_out_scale", f32, {}, ""),
            "weights_name: lacks 1 of its model's 18 weights, layer0.block_out_scale first");
  EXPECT_EQ(refused(serial, "layer0.w_out_scale", f32, {}, ""),
            "weights_name: lacks 1 of its model's 20 weights, layer0.w_out_scale first");
}

TEST(StoreInt8, AVersionHasOneTypeOfEachWeight) {
  const Weights f32 = small(), int8 = small_int8();
  constexpr const char* kF32 = "32-bit little-endian IEEE floats";
  constexpr const char* kInt8 = "signed 8-bit integers";
  const struct {
    const char* name;
    hid_t type;
    std::vector<hsize_t> dims;
    const char *letters, *is;
    bool of_int8 = true;  ///< the file
  } kCases[] = {
      {"layer0.wk", H5T_IEEE_F32LE, {6, 1, 2}, "EKQ", kF32},
      {"layer0.wk", H5T_STD_I8LE, {6, 1, 2}, "EKQ", kInt8, false},
      {"embed", H5T_STD_I8LE, {7, 6}, "VE", kInt8},
      {"layer0.norm", H5T_STD_I8LE, {6}, "E", kInt8},
      {"layer0.wk_scale", H5T_STD_I8LE, {1, 2}, "KQ", kInt8},
      {"layer0.wk_scale", H5T_IEEE_F64LE, {1, 2}, "KQ", "another type of 8 bytes"},
      // Other integers are no codes.
      {"layer0.wk", H5T_STD_U8LE, {6, 1, 2}, "EKQ", "another type of 1 bytes"},
      {"layer0.wk", H5T_STD_I16LE, {6, 1, 2}, "EKQ", "another type of 2 bytes"},
      {"layer0.wk", H5T_STD_I16BE, {6, 1, 2}, "EKQ", "another type of 2 bytes"},
      {"layer0.wk", H5T_IEEE_F32BE, {6, 1, 2}, "EKQ", "another type of 4 bytes"},
      {"layer0.wk_scale", H5T_IEEE_F32BE, {1, 2}, "KQ", "another type of 4 bytes"},
  };
  for (const auto& c : kCases) {
    const bool codes = c.of_int8 && std::string(c.name) == "layer0.wk";
    EXPECT_EQ(refused(c.of_int8 ? int8 : f32, c.name, c.type, c.dims, c.letters),
              std::string("weights_type: is version ") + (c.of_int8 ? "2" : "1") +
                  " and must hold " + c.name + " as " + (codes ? kInt8 : kF32) + ", it is " + c.is);
  }
  EXPECT_EQ(refused(int8, "layer0.wk", H5T_STD_I8BE, {6, 1, 2}, "EKQ"), "") << "has no order";
  // Scales alone make no int8 file.
  EXPECT_EQ(
      refused(f32, "layer0.wk_scale", H5T_IEEE_F32LE, {1, 2}, "KQ"),
      "weights_name: holds \"layer0.wk_scale\", which is not a weight of its model in version "
      "1");
}

TEST(StoreInt8, RefusesToSaveWhatItCouldNotLoad) {
  const Weights whole = small_int8();
  const auto refused = [&](const char* name, float value) {
    const Folder folder;
    std::map<std::string, Tensor> tensors = whole.tensors();
    tensors.at(name).data[2] = value;
    const Weights broken(whole.config(), std::move(tensors), NumberFormat::int8);
    const std::string message = message_of([&] { save_weights(broken, folder / "w.h5"); });
    EXPECT_EQ(folder.entries(), message.empty() ? 1 : 0);
    return message;
  };
  constexpr const char* kCode = "a code is a whole number from -127 to 127";
  EXPECT_EQ(refused("layer0.wo", -128),
            std::string("weights_value: layer0.wo[0, 0, 2] is -128; ") + kCode);
  EXPECT_EQ(refused("layer0.wo", 0.5),
            std::string("weights_value: layer0.wo[0, 0, 2] is 0.5; ") + kCode);
  EXPECT_EQ(refused("layer0.w_up_scale", 0),
            "weights_value: layer0.w_up_scale[2] is 0; a scale is above 0");
  EXPECT_EQ(refused("layer0.w_up_scale", 2), "");
}

}  // namespace
}  // namespace shardproof
