#include "weights/storage/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/weights/expect_error.h"
#include "weights/base/bf16.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

const char* const kModel = "palm-tiny,layers=1,E=4,F=3,H=2,Q=2,V=5,positions=3,tied=false";

// The weights of kModel after `change` to the map of its tensors.
template <class Change>
Weights changed(Change&& change) {
  const Weights whole = generate_weights(parse_model(kModel), 1);
  std::map<std::string, Tensor> tensors = whole.tensors();
  change(tensors);
  return {whole.config(), std::move(tensors)};
}

void put_nan_into_w_gate(std::map<std::string, Tensor>& t) {
  t["layer0.w_gate"].data[7] = std::numeric_limits<float>::quiet_NaN();
}

TEST(Weights, ValidateNamesWhatIsWrong) {
  const auto label = [](auto&& change) { return label_of([&] { validate(changed(change)); }); };
  EXPECT_EQ(label([](auto&) {}), "");
  EXPECT_EQ(label([](auto& t) { t.erase("layer0.wq"); }), "weights_name");
  EXPECT_EQ(label([](auto& t) { t["layer1.wq"] = t["layer0.wq"]; }), "weights_name");
  EXPECT_EQ(label([](auto& t) { t["layer0.wq"].shape = {2, 4, 2}; }), "weights_shape");
  EXPECT_EQ(label([](auto& t) { t["layer0.wq"].data.pop_back(); }), "weights_shape");
  EXPECT_EQ(message_of([] { validate(changed(put_nan_into_w_gate)); }),
            "weights_value: layer0.w_gate[2, 1] is nan; weights must be finite");
  EXPECT_EQ(label([](auto& t) { t["final_norm"].data[0] = -INFINITY; }), "weights_value");
}

TEST(Weights, AtRefusesUnknownNames) {
  const Weights w = changed([](auto&) {});
  EXPECT_EQ(w.at("embed")->shape, (Shape{5, 4}));
  EXPECT_EQ(label_of([&] { w.at("layer9.wq"); }), "weights_name");
}

TEST(Weights, Bf16RoundsMatricesOnly) {
  const Weights whole = changed([](auto&) {});
  const Weights rounded = stored_as(whole, NumberFormat::bf16);
  for (const WeightSpec& spec : weight_specs(whole.config())) {
    const Tensor& before = *whole.at(spec.name);
    const Tensor& after = *rounded.at(spec.name);
    ASSERT_EQ(after.shape, before.shape);
    bool differs = false;
    for (std::size_t i = 0; i < before.data.size(); ++i) {
      const float expected = spec.matrix ? round_to_bf16(before.data[i]) : before.data[i];
      EXPECT_EQ(after.data[i], expected) << spec.name << ' ' << i;
      differs = differs || after.data[i] != before.data[i];
    }
    EXPECT_EQ(differs, spec.matrix) << spec.name;
  }
  EXPECT_EQ(stored_as(whole, NumberFormat::f32).at("embed")->data, whole.at("embed")->data);
}

TEST(Weights, Bf16RefusesWhatItCannotHold) {
  const Weights large =
      changed([](auto& t) { t["embed"].data[3] = std::numeric_limits<float>::max(); });
  EXPECT_EQ(label_of([&] { stored_as(large, NumberFormat::bf16); }), "weights_value");
}

TEST(Weights, ForInt8StayAsTheyAreUntilTheyArePlaced) {
  const Weights given = changed([](auto&) {});
  const Weights stored = stored_as(given, NumberFormat::int8);
  EXPECT_EQ(stored.stored_type(), NumberFormat::f32);
  for (const auto& [name, tensor] : given.tensors()) EXPECT_EQ(stored.at(name)->data, tensor.data);
}

TEST(Weights, KeptAsInt8AreCodesAndScales) {
  const ModelConfig config = parse_model("palm-tiny,layers=1,E=4,F=3,H=2,Q=2,V=5,positions=3");
  const auto said = [&](const char* name, float value) {
    std::map<std::string, Tensor> tensors;
    for (const WeightSpec& spec : weight_specs(config, NumberFormat::int8))
      tensors.emplace(spec.name, Tensor(spec.shape, 1.0F));
    tensors.at(name).data[1] = value;
    return message_of([&] { validate(Weights(config, std::move(tensors), NumberFormat::int8)); });
  };
  for (const WeightSpec& spec : weight_specs(config, NumberFormat::int8)) {
    if (!spec.int8) continue;
    const std::string at =
        "weights_value: " + spec.name + (spec.dims.size() == 3 ? "[0, 0, 1] is " : "[0, 1] is ");
    for (const auto& [code, text] : {std::pair{-0.0F, "-0"},
                                     {0.5F, "0.5"},
                                     {-126.5F, "-126.5"},
                                     {128.0F, "128"},
                                     {-128.0F, "-128"},
                                     {127.00001F, "127.00001"},
                                     {0x1p-149F, "1e-45"}})
      EXPECT_EQ(said(spec.name.c_str(), code),
                at + text + "; a code is a whole number from -127 to 127");
    for (const float code : {0.0F, 127.0F, -127.0F, -1.0F})
      EXPECT_EQ(said(spec.name.c_str(), code), "");
    EXPECT_EQ(said(spec.name.c_str(), std::numeric_limits<float>::quiet_NaN()),
              at + "nan; weights must be finite");
  }
  for (const WeightSpec& spec : weight_specs(config, NumberFormat::int8)) {
    if (!spec.scale) continue;
    for (const float scale : {0.0F, -0.0F, -1.0F, -0x1p-149F})
      EXPECT_TRUE(said(spec.name.c_str(), scale).ends_with("; a scale is above 0")) << spec.name;
    EXPECT_TRUE(said(spec.name.c_str(), std::numeric_limits<float>::infinity())
                    .ends_with(" is inf; weights must be finite"));
    EXPECT_EQ(said(spec.name.c_str(), 0x1p-149F), "");
  }
  // What is no code may be any number.
  for (const char* name : {"embed", "layer0.norm", "final_norm", "rope_cos"})
    for (const float value : {-0.0F, 0.5F, -128.0F}) EXPECT_EQ(said(name, value), "") << name;
}

TEST(Weights, KeptAsInt8AreNoOthers) {
  const Weights codes(parse_model("palm-tiny"), {}, NumberFormat::int8);
  EXPECT_EQ(stored_as(codes, NumberFormat::int8).stored_type(), NumberFormat::int8);
  for (const NumberFormat type : {NumberFormat::f32, NumberFormat::bf16})
    EXPECT_EQ(label_of([&] { stored_as(codes, type); }), "weights_int8");
}

}  // namespace
}  // namespace shardproof
