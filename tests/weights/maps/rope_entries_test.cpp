#include "weights/maps/rope_entries.h"

#include <gtest/gtest.h>

#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

using Json = ModelConfigFile;

/// The value of a formula over a config, by a map that sets the number eps to it.
std::string eps_of(const std::string& formula, const Json& config) {
  const ModelText text = parse_model_text(
      "model m\ndim E d\ndim V v\nnumber eps\nembedding\nweight t : VE\n"
      "embed : BLE = gather(t, ids, V)\nlayer\nout : BLE = mul(in, eps)\nhead\n"
      "logits : BLV = einsum(BLE,VE->BLV; in, t)\n");
  return mapped_sizes(parse_model_map("eps = " + formula, "m.map"), text, config).keys.at("eps");
}

const Json kLlama3{
    {"rope_type", "llama3"}, {"rope_theta", 5e5}, {"factor", 8.0}, {"partial_rotary_factor", 0.5}};

TEST(RopeEntries, OfOneFormAreThoseOfTheOther) {
  const Json newer{{"rope_parameters", kLlama3}};
  EXPECT_EQ(rope_entry(newer, "rope_theta"), Json(5e5));
  EXPECT_EQ(rope_entry(newer, "partial_rotary_factor"), Json(0.5));
  EXPECT_EQ(rope_entry(newer, "rope_scaling"), (Json{{"rope_type", "llama3"}, {"factor", 8.0}}));
  EXPECT_EQ(rope_entry(newer, "rope_local_base_freq"), std::nullopt);
  EXPECT_EQ(rope_entry(newer, "hidden_size"), std::nullopt);
  EXPECT_EQ(rope_entry(Json::object(), "rope_theta"), std::nullopt);
  EXPECT_EQ(rope_entry(Json{{"rope_parameters", nullptr}}, "rope_theta"), std::nullopt);
  // One that says no scaling says so.
  const Json plain{{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  EXPECT_EQ(rope_entry(plain, "rope_scaling"), Json());
  EXPECT_EQ(rope_entry(plain, "partial_rotary_factor"), std::nullopt);
  EXPECT_EQ(rope_entry(Json{{"rope_parameters", {{"rope_theta", 1e4}}}}, "rope_scaling"), Json());
}

TEST(RopeEntries, OfLayersOfTwoTypes) {
  const Json both{
      {"rope_parameters",
       {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 1e6}}},
        {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}}}};
  EXPECT_EQ(rope_entry(both, "rope_theta"), Json(1e6));
  EXPECT_EQ(rope_entry(both, "rope_local_base_freq"), Json(1e4));
  EXPECT_EQ(rope_entry(both, "rope_scaling"), (Json{{"rope_type", "linear"}, {"factor", 8.0}}));
  const auto label = [](const Json& parameters, const char* name) {
    return label_of([&] { rope_entry(Json{{"rope_parameters", parameters}}, name); });
  };
  EXPECT_EQ(label({{"chunked", {{"rope_theta", 1e4}}}}, "rope_theta"), "model_map_c2");
  EXPECT_EQ(label({{"full_attention", {{"rope_theta", 1e4}}},
                   {"sliding_attention", {{"rope_type", "yarn"}, {"rope_theta", 1e4}}}},
                  "rope_local_base_freq"),
            "model_map_c2");
  EXPECT_EQ(label(Json::array({1}), "rope_theta"), "model_map_c2");
  EXPECT_EQ(label(3, "rope_theta"), "model_map_c2");
  EXPECT_EQ(label(3, "hidden_size"), "");
}

TEST(RopeEntries, AreReadByMaps) {
  EXPECT_EQ(eps_of("rope_theta", {{"rope_theta", 1e4}}), "10000");
  EXPECT_EQ(eps_of("rope_theta", {{"rope_parameters", kLlama3}}), "500000");
  EXPECT_EQ(eps_of("rope_theta", {{"rope_theta", 5e5}, {"rope_parameters", kLlama3}}), "500000");
  EXPECT_EQ(eps_of("rope_scaling['factor']", {{"rope_parameters", kLlama3}}), "8");
  EXPECT_EQ(eps_of("1 if rope_scaling == None else 2", {{"eps", 1}}), "1");
  // Never one of two, and never a default.
  EXPECT_TRUE(refuses(
      [] {
        eps_of("rope_theta", {{"rope_theta", 1e4}, {"rope_parameters", kLlama3}});
      },
      "model_map_c2", "the config says rope_theta as 10000.0, and in rope_parameters as 500000.0"));
  EXPECT_TRUE(refuses(
      [] {
        eps_of("rope_theta", {{"rope_parameters", {{"rope_type", "default"}}}});
      },
      "model_map_c2", "the config has no rope_theta; or give eps=VALUE"));
}

}  // namespace
}  // namespace shardproof
