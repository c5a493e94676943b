// Weights files of version 2, which keep int8 weights: what store_test.cpp checks of version 1, and
// what only codes and scales can have wrong.
#include <gtest/gtest.h>
#include <hdf5.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/weights/changed_file.h"
#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "tests/weights/random_model.h"
#include "weights/hdf5/detail/handle.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"
#include "weights/storage/store.h"

namespace shardproof {
namespace {

// Codes of every value there is, and scales of all sizes.
Weights int8_of(const ModelConfig& config, std::uint64_t seed) {
  const Weights whole = generate_weights(config, seed);
  std::map<std::string, Tensor> tensors;
  for (const WeightSpec& spec : weight_specs(config, WeightType::int8)) {
    if (!spec.int8 && !spec.scale) {
      tensors.emplace(spec.name, whole.at(spec.name));
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
  return {config, std::move(tensors), WeightType::int8};
}

Weights small_int8(const std::string& more = "") { return int8_of(parse_model(kModel + more), 1); }

template <class Change>
std::string load_changed_int8(Change&& change, const Weights& weights = small_int8()) {
  const std::string message = load_changed(change, weights);
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

/// What is wrong, of the file, after its name: "layer0.wq[0] is 3; ...".
std::string after_name(const std::string& message) {
  const auto end = message.find("w.h5\" ");
  const auto label = message.find(": ");
  if (end == std::string::npos || label == std::string::npos) return message;
  return message.substr(0, label + 2) + message.substr(end + 6);
}

/// Another value in place of an element.
void poke(hid_t file, const char* name, std::size_t index, double value) {
  const Hdf5Handle data(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose);
  ASSERT_TRUE(data);
  const Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
  std::vector<double> all(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())));
  ASSERT_GE(H5Dread(data.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()), 0);
  ASSERT_LT(index, all.size());
  all[index] = value;
  ASSERT_GE(H5Dwrite(data.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()), 0);
}

void put_ones(hid_t file, const char* name, hid_t type, std::vector<hsize_t> dims,
              const char* letters) {
  if (H5Lexists(file, name, H5P_DEFAULT) > 0) H5Ldelete(file, name, H5P_DEFAULT);
  const Hdf5Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                         H5Sclose);
  const Hdf5Handle data(
      H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
  ASSERT_TRUE(data);
  const std::vector<double> ones(
      static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())), 1.0);
  ASSERT_GE(H5Dwrite(data.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, ones.data()), 0);
  put_text(data.get(), "dims", letters);
}

void expect_same(const Weights& a, const Weights& b) {
  EXPECT_EQ(a.config(), b.config());
  EXPECT_EQ(a.stored_type(), b.stored_type());
  ASSERT_EQ(a.all().size(), b.all().size());
  for (const auto& [name, tensor] : a.all()) {
    EXPECT_EQ(tensor.shape, b.at(name).shape) << name;
    EXPECT_EQ(tensor.data, b.at(name).data) << name;
  }
}

TEST(StoreInt8, LoadsWhatItSaved) {
  for (const char* more :
       {"", ",block=serial", ",norm=layernorm,bias=all", ",ffn=gelu,tied=false,K=2",
        ",block=serial,norm=layernorm,bias=all,rope=none"}) {
    const Folder folder;
    const Weights weights = small_int8(more);
    save_weights(weights, folder / "w.h5");
    expect_same(load_weights(folder / "w.h5"), weights);
    EXPECT_EQ(folder.entries(), 1);
  }
}

RC_GTEST_PROP(StoreInt8, LoadsAnyModelThatItSaved, ()) {
  const Folder folder;
  const Weights weights = int8_of(draw_model(12), *rc::gen::arbitrary<std::uint64_t>());
  save_weights(weights, folder / "w.h5");
  expect_same(load_weights(folder / "w.h5"), weights);
  RC_ASSERT(!testing::Test::HasFailure());
}

TEST(StoreInt8, KeepsCodesInAByte) {
  const Folder folder;
  save_weights(small_int8(), folder / "w.h5");
  const Hdf5Handle file(H5Fopen((folder / "w.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  for (const WeightSpec& spec : weight_specs(parse_model(kModel), WeightType::int8)) {
    const Hdf5Handle data(H5Dopen2(file.get(), spec.name.c_str(), H5P_DEFAULT), H5Dclose);
    const Hdf5Handle type(H5Dget_type(data.get()), H5Tclose);
    EXPECT_GT(H5Tequal(type.get(), spec.int8 ? H5T_STD_I8LE : H5T_IEEE_F32LE), 0) << spec.name;
  }
  EXPECT_EQ(weights_format(WeightType::int8), 2);
  EXPECT_EQ(weights_format(WeightType::f32), 1);
}

TEST(StoreInt8, EveryVersionElseIsRefused) {
  for (int version : {0, 3, -1}) {
    const std::string message = after_name(load_changed_int8([&](hid_t f) {
      const Hdf5Handle attribute(H5Aopen(f, "version", H5P_DEFAULT), H5Aclose);
      H5Awrite(attribute.get(), H5T_NATIVE_INT, &version);
    }));
    EXPECT_EQ(message, "weights_version: is version " + std::to_string(version) +
                           "; legal: 1 (f32 weights), 2 (int8 weights)");
  }
}

TEST(StoreInt8, NamesEveryBadCodeAndScale) {
  const auto refused = [](const char* name, std::size_t index, double value) {
    return after_name(load_changed_int8([&](hid_t f) { poke(f, name, index, value); }));
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refused("layer0.wq", 7, -128),
            "weights_value: layer0.wq[1, 1, 1] is -128; a code is a whole number from -127 to 127");
  EXPECT_EQ(refused("layer0.w_out", 29, -128),
            "weights_value: layer0.w_out[4, 5] is -128; a code is a whole number from -127 to 127");
  EXPECT_EQ(refused("layer0.wq", 7, -127), "");
  EXPECT_EQ(refused("layer0.wq", 7, 127), "");
  EXPECT_EQ(refused("layer0.wk_scale", 1, 0),
            "weights_value: layer0.wk_scale[0, 1] is 0; a scale is above 0");
  EXPECT_EQ(refused("layer0.wq_scale", 3, -0.0),
            "weights_value: layer0.wq_scale[1, 1] is -0; a scale is above 0");
  EXPECT_EQ(refused("layer0.w_up_scale", 4, -0.5),
            "weights_value: layer0.w_up_scale[4] is -0.5; a scale is above 0");
  EXPECT_EQ(refused("layer0.block_out_scale", 5, kInfinity),
            "weights_value: layer0.block_out_scale[5] is inf; weights must be finite");
  EXPECT_EQ(refused("layer0.w_gate_scale", 0, std::numeric_limits<double>::quiet_NaN()),
            "weights_value: layer0.w_gate_scale[0] is nan; weights must be finite");
  EXPECT_EQ(refused("layer0.wv_scale", 0, 0x1p-149), "") << "the least scale there is";
}

TEST(StoreInt8, NamesScalesOfAnotherLength) {
  const auto refused = [](const char* name, std::vector<hsize_t> dims, const char* letters) {
    return after_name(
        load_changed_int8([&](hid_t f) { put_ones(f, name, H5T_IEEE_F32LE, dims, letters); }));
  };
  EXPECT_EQ(refused("layer0.wq_scale", {2, 2}, "HQ"), "");
  EXPECT_EQ(refused("layer0.wq_scale", {2, 3}, "HQ"),
            "weights_shape: must hold layer0.wq_scale as HQ [2, 2], it is \"HQ\" [2, 3]");
  EXPECT_EQ(refused("layer0.wq_scale", {4}, "HQ"),
            "weights_shape: must hold layer0.wq_scale as HQ [2, 2], it is \"HQ\" [4]");
  EXPECT_EQ(refused("layer0.block_out_scale", {7}, "E"),
            "weights_shape: must hold layer0.block_out_scale as E [6], it is \"E\" [7]");
  EXPECT_EQ(refused("layer0.block_out_scale", {6}, "F"),
            "weights_shape: must hold layer0.block_out_scale as E [6], it is \"F\" [6]");
}

TEST(StoreInt8, NamesScalesOfAnotherBlock) {
  // A parallel block has one for its output, a serial one two.
  EXPECT_EQ(
      after_name(load_changed_int8(
          [](hid_t f) { put_ones(f, "layer0.wo_scale", H5T_IEEE_F32LE, {6}, "E"); })),
      "weights_name: holds \"layer0.wo_scale\", which is not a weight of its model in version "
      "2");
  const auto without = [](const char* name) {
    return [=](hid_t f) { H5Ldelete(f, name, H5P_DEFAULT); };
  };
  EXPECT_EQ(after_name(load_changed_int8(without("layer0.block_out_scale"))),
            "weights_name: lacks 1 of its model's 18 weights, layer0.block_out_scale first");
  EXPECT_EQ(
      after_name(load_changed_int8(without("layer0.w_out_scale"), small_int8(",block=serial"))),
      "weights_name: lacks 1 of its model's 20 weights, layer0.w_out_scale first");
}

TEST(StoreInt8, AVersionHasOneTypeOfEachWeight) {
  const auto type_of = [](const Weights& weights, const char* name, hid_t type,
                          std::vector<hsize_t> dims, const char* letters) {
    return after_name(
        load_changed_int8([&](hid_t f) { put_ones(f, name, type, dims, letters); }, weights));
  };
  const Weights f32 = small();
  const Weights int8 = small_int8();
  constexpr const char* kF32 = "32-bit little-endian IEEE floats";
  constexpr const char* kInt8 = "signed 8-bit integers";
  const auto said = [](const char* version, const char* name, const std::string& as,
                       const std::string& is) {
    return std::string("weights_type: is version ") + version + " and must hold " + name + " as " +
           as + ", it is " + is;
  };
  EXPECT_EQ(type_of(int8, "layer0.wk", H5T_IEEE_F32LE, {6, 1, 2}, "EKQ"),
            said("2", "layer0.wk", kInt8, kF32));
  EXPECT_EQ(type_of(f32, "layer0.wk", H5T_STD_I8LE, {6, 1, 2}, "EKQ"),
            said("1", "layer0.wk", kF32, kInt8));
  EXPECT_EQ(type_of(int8, "embed", H5T_STD_I8LE, {7, 6}, "VE"), said("2", "embed", kF32, kInt8));
  EXPECT_EQ(type_of(int8, "layer0.norm", H5T_STD_I8LE, {6}, "E"),
            said("2", "layer0.norm", kF32, kInt8));
  EXPECT_EQ(type_of(int8, "layer0.wk_scale", H5T_STD_I8LE, {1, 2}, "KQ"),
            said("2", "layer0.wk_scale", kF32, kInt8));
  EXPECT_EQ(type_of(int8, "layer0.wk_scale", H5T_IEEE_F64LE, {1, 2}, "KQ"),
            said("2", "layer0.wk_scale", kF32, "another type of 8 bytes"));
  // Other integers are no codes; a byte has no order.
  EXPECT_EQ(type_of(int8, "layer0.wk", H5T_STD_U8LE, {6, 1, 2}, "EKQ"),
            said("2", "layer0.wk", kInt8, "another type of 1 bytes"));
  EXPECT_EQ(type_of(int8, "layer0.wk", H5T_STD_I16LE, {6, 1, 2}, "EKQ"),
            said("2", "layer0.wk", kInt8, "another type of 2 bytes"));
  EXPECT_EQ(type_of(int8, "layer0.wk", H5T_STD_I16BE, {6, 1, 2}, "EKQ"),
            said("2", "layer0.wk", kInt8, "another type of 2 bytes"));
  EXPECT_EQ(type_of(int8, "layer0.wk", H5T_IEEE_F32BE, {6, 1, 2}, "EKQ"),
            said("2", "layer0.wk", kInt8, "another type of 4 bytes"));
  EXPECT_EQ(type_of(int8, "layer0.wk_scale", H5T_IEEE_F32BE, {1, 2}, "KQ"),
            said("2", "layer0.wk_scale", kF32, "another type of 4 bytes"));
  EXPECT_EQ(type_of(int8, "layer0.wk", H5T_STD_I8BE, {6, 1, 2}, "EKQ"), "");
  // Scales alone make no int8 file.
  EXPECT_EQ(
      type_of(f32, "layer0.wk_scale", H5T_IEEE_F32LE, {1, 2}, "KQ"),
      "weights_name: holds \"layer0.wk_scale\", which is not a weight of its model in version "
      "1");
}

TEST(StoreInt8, RefusesToSaveWhatItCouldNotLoad) {
  const Weights whole = small_int8();
  const auto refused = [&](const char* name, float value) {
    const Folder folder;
    std::map<std::string, Tensor> tensors(whole.all().begin(), whole.all().end());
    tensors.at(name).data[2] = value;
    const Weights broken(whole.config(), std::move(tensors), WeightType::int8);
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

TEST(StoreInt8, AnyTruncationIsRefused) {
  const Folder folder;
  save_weights(small_int8(), folder / "w.h5");
  const std::vector<char> whole = bytes_of(folder / "w.h5");
  for (std::size_t k = 0; k < 50; ++k) {
    const auto length = static_cast<std::ptrdiff_t>(whole.size() * k / 50);
    write_bytes(folder / "cut.h5", {whole.begin(), whole.begin() + length});
    ASSERT_EQ(label_of([&] { load_weights(folder / "cut.h5"); }), "weights_open") << length;
  }
}

TEST(StoreInt8, AFlippedByteIsDetectedOrHarmless) {
  const Folder folder;
  const Weights weights = small_int8();
  save_weights(weights, folder / "w.h5");
  const std::vector<char> whole = bytes_of(folder / "w.h5");
  for (std::uint64_t k = 0; k < 200; ++k) {
    const auto words = counter_random(19, "flip", k);
    std::vector<char> bytes = whole;
    bytes[words[0] % bytes.size()] ^= static_cast<char>(1 + words[1] % 255);
    write_bytes(folder / "bad.h5", bytes);
    label_of([&] { expect_same(load_weights(folder / "bad.h5"), weights); });
    ASSERT_FALSE(HasFailure()) << words[0] % bytes.size();
  }
}

}  // namespace
}  // namespace shardproof
