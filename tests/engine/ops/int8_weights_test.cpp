// Whole weights made int8, as `weights quantize` does; the quantizer itself is quantize_test's.
#include "engine/ops/int8_weights.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/weights/expect_error.h"
#include "tests/weights/on_demand.h"
#include "tests/weights/random_model.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

Weights changed(const Weights& whole, const std::string& name, const std::vector<float>& data) {
  std::map<std::string, Tensor> tensors = whole.tensors();
  EXPECT_EQ(tensors.at(name).data.size(), data.size()) << name;
  tensors.at(name).data = data;
  return {whole.config(), std::move(tensors)};
}

/// Whether every code times its scale is nearest to its weight, every scale is that of the largest
/// weight it belongs to, and nothing else has changed.
std::string fault_of(const Weights& made, const Weights& whole) {
  const ModelConfig& config = whole.config();
  if (made.stored_type() != NumberFormat::int8) return "kept";
  for (const WeightSpec& spec : weight_specs(config))
    if (!spec.int8 && made.at(spec.name)->data != whole.at(spec.name)->data) return spec.name;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const WeightRow& row : all_weights()) {
      if (row.kind != WeightKind::scale || !row.in_model(config)) continue;
      const std::string id = weight_id(layer, row.name);
      const std::vector<float>& scales = made.at(id)->data;
      for (std::size_t j = 0; j < scales.size(); ++j) {
        float most = 0.0F;
        for (std::string_view name : row.scaled) {
          if (name.empty()) continue;
          const std::vector<float>& w = whole.at(weight_id(layer, name))->data;
          const std::vector<float>& codes = made.at(weight_id(layer, name))->data;
          for (std::size_t i = j; i < w.size(); i += scales.size()) {
            most = std::max(most, std::abs(w[i]));
            const double exact = static_cast<double>(w[i]) / static_cast<double>(scales[j]);
            const double off = std::abs(exact - static_cast<double>(codes[i]));
            const bool is_even = std::fmod(static_cast<double>(codes[i]), 2.0) == 0.0;
            const bool clipped = std::abs(codes[i]) == 127.0F && std::abs(exact) > 127.0;
            if (!clipped && (off > 0.5 || (off == 0.5 && !is_even)))
              return std::string(name) + " " + std::to_string(i);
            if (std::signbit(codes[i]) && codes[i] == 0.0F) return std::string(name) + " is -0";
          }
        }
        const auto scale = static_cast<float>(static_cast<double>(most) / 127.0);
        if (scales[j] != (scale == 0.0F ? 1.0F : scale)) return id + " " + std::to_string(j);
      }
    }
  return "";
}

RC_GTEST_PROP(Int8Weights, AreTheNearestCodesInAnyModel, ()) {
  const Weights whole = generate_weights(draw_model(12), *rc::gen::arbitrary<std::uint64_t>());
  const Weights made = int8_weights(whole);
  validate(made);
  RC_ASSERT(fault_of(made, whole) == "");
}

TEST(Int8Weights, ZerosTiesAndTheSmallestOfAll) {
  for (const char* block : {"parallel", "serial"}) {
    const Weights whole = generate_weights(
        parse_model(std::string("palm-tiny,layers=1,E=4,F=3,H=2,Q=2,V=5,positions=3,block=") +
                    block),
        1);
    constexpr float kLeast = std::numeric_limits<float>::denorm_min();
    // A channel of zeros, of what divided by 127 is not a float any more, of ties, of -0.
    const Weights hard =
        changed(whole, "layer0.w_gate",
                {0, kLeast, 127, 0, -kLeast, 0.5, 0, kLeast, -1.5, -0.0F, kLeast * 60, -0.0F});
    const Weights made = int8_weights(hard);
    EXPECT_EQ(fault_of(made, hard), "");
    EXPECT_EQ(made.at("layer0.w_gate_scale")->data, (std::vector<float>{1, 1, 1}));
    EXPECT_EQ(made.at("layer0.w_gate")->data,
              (std::vector<float>{0, 0, 127, 0, 0, 0, 0, 0, -2, 0, 0, 0}));
    validate(made);
  }
}

TEST(Int8Weights, OneContractionHasOneScale) {
  const char* const model = "palm-tiny,layers=1,E=2,F=2,H=1,Q=2,V=5,positions=3,block=";
  for (const bool serial : {false, true}) {
    Weights whole =
        generate_weights(parse_model(std::string(model) + (serial ? "serial" : "parallel")), 1);
    whole = changed(whole, "layer0.wo", {127, 1, -3, 1});
    whole = changed(whole, "layer0.w_out", {1, -254, 1, 2});
    const Weights made = int8_weights(whole);
    EXPECT_EQ(fault_of(made, whole), "");
    if (serial) {
      EXPECT_EQ(made.at("layer0.wo")->data, (std::vector<float>{127, 127, -3, 127}));
      EXPECT_EQ(made.at("layer0.w_out")->data, (std::vector<float>{127, -127, 127, 1}));
    } else {
      EXPECT_EQ(made.at("layer0.block_out_scale")->data, (std::vector<float>{1, 2}));
      EXPECT_EQ(made.at("layer0.wo")->data, (std::vector<float>{127, 0, -3, 0}));
      EXPECT_EQ(made.at("layer0.w_out")->data, (std::vector<float>{1, -127, 1, 1}));
    }
  }
}

TEST(Int8Weights, AreNotMadeTwice) {
  const Weights made = int8_weights(generate_weights(parse_model("palm-tiny,layers=1"), 1));
  EXPECT_EQ(message_of([&] { int8_weights(made); }),
            "weights_int8: the weights are kept as int8 already; legal: f32 weights");
}

// That the checks above see each kind of fault.
TEST(Int8Weights, EveryFaultIsSeen) {
  const Weights whole =
      generate_weights(parse_model("palm-tiny,layers=1,E=4,F=3,H=2,Q=2,V=5,positions=3"), 1);
  const Weights made = int8_weights(whole);
  const auto fault = [&](const std::string& name, std::size_t index, float by) {
    std::map<std::string, Tensor> tensors = made.tensors();
    tensors.at(name).data[index] += by;
    return fault_of(Weights(made.config(), std::move(tensors), NumberFormat::int8), whole);
  };
  EXPECT_EQ(fault("layer0.wq", 3, 0), "");
  EXPECT_EQ(fault("layer0.wq", 3, 1), "wq 3");
  EXPECT_EQ(fault("layer0.wo", 3, -1), "wo 3");
  EXPECT_EQ(fault("layer0.w_out", 11, 1), "w_out 11");
  EXPECT_EQ(fault("layer0.block_out_scale", 1, 1e-7F), "layer0.block_out_scale 1");
  EXPECT_EQ(fault("embed", 2, 1), "embed");
  EXPECT_EQ(fault("layer0.norm", 2, 1), "layer0.norm");
  EXPECT_EQ(fault_of(whole, whole), "kept");
}

/// Of large models the codes of each matrix are made when they are asked for.
RC_GTEST_PROP(Int8Weights, OnDemandAreThoseInMemory, ()) {
  const Weights whole = generate_weights(draw_model(12), *rc::gen::arbitrary<std::uint64_t>());
  const Weights all = int8_weights(whole), each = int8_weights(on_demand(whole));
  RC_ASSERT(each.on_demand() && each.stored_type() == NumberFormat::int8);
  RC_ASSERT(each.names() == all.names());
  for (const std::string& name : all.names()) {
    RC_ASSERT(each.shape(name) == all.shape(name));
    RC_ASSERT(each.at(name)->data == all.at(name)->data);
  }
}

}  // namespace
}  // namespace shardproof
