#include "weights/registry.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "tests/weights/random_model.h"
#include "weights/passes.h"

namespace shardproof {
namespace {

// "name dims" of each weight, in order.
std::string listing(const ModelConfig& config) {
  std::string text;
  for (const WeightSpec& spec : weight_specs(config)) text += spec.name + " " + spec.dims + "; ";
  return text;
}

std::string checkpoints(const ModelConfig& config) {
  std::string text;
  for (const CheckpointSpec& spec : checkpoint_specs(config)) {
    text += spec.name + " " + spec.dims + "; ";
  }
  return text;
}

TEST(Registry, ListsTheWeightsOfAParallelModel) {
  EXPECT_EQ(listing(parse_model("palm-tiny,layers=1")),
            "embed VE; layer0.norm E; layer0.wq EHQ; layer0.wk EKQ; layer0.wv EKQ; layer0.wo HQE; "
            "layer0.w_gate EF; layer0.w_up EF; layer0.w_out FE; final_norm E; rope_cos PJ; "
            "rope_sin PJ; ");
}

TEST(Registry, ListsTheWeightsOfASerialModelWithBiases) {
  const char* text = "palm-tiny,layers=1,block=serial,norm=layernorm,bias=all,tied=false,rope=none";
  EXPECT_EQ(listing(parse_model(text)),
            "embed VE; unembed VE; layer0.norm E; layer0.norm2 E; layer0.wq EHQ; layer0.wk EKQ; "
            "layer0.wv EKQ; layer0.wo HQE; layer0.w_gate EF; layer0.w_up EF; layer0.w_out FE; "
            "layer0.norm_bias E; layer0.norm2_bias E; layer0.bq HQ; layer0.bk KQ; layer0.bv KQ; "
            "layer0.bo E; layer0.b_gate F; layer0.b_up F; layer0.b_out E; final_norm E; "
            "final_norm_bias E; ");
}

TEST(Registry, GivesShapesAndFanIn) {
  const ModelConfig c = parse_model("palm-tiny,K=2,rotary=0.5,positions=5");
  for (const WeightSpec& spec : weight_specs(c)) {
    if (spec.name == "embed") {
      EXPECT_EQ(spec.fan_in, 1);
    } else if (spec.name == "layer1.wk") {
      EXPECT_EQ(spec.shape, (Shape{96, 2, 8}));
      EXPECT_EQ(spec.fan_in, 96);
    } else if (spec.name == "layer1.wo") {
      EXPECT_EQ(spec.shape, (Shape{24, 8, 96}));
      EXPECT_EQ(spec.fan_in, 192);
    } else if (spec.name == "layer1.w_out") {
      EXPECT_EQ(spec.fan_in, 384);
    } else if (spec.name == "rope_cos") {
      EXPECT_EQ(spec.shape, (Shape{5, 2}));
    }
  }
}

TEST(Registry, ListsTheCheckpoints) {
  EXPECT_EQ(checkpoints(parse_model("palm-tiny")),
            "embed BLE; norm BLE; final_norm BLE; q BLHQ; k BLKQ; v BLKQ; q_rot BLHQ; k_rot BLKQ; "
            "k_cache BMKQ; v_cache BMKQ; score BLHM; max BLH; exp BLHM; denom BLH; attn BLHQ; "
            "gate BLF; up BLF; hidden BLF; block_out BLE; out BLE; logits BV; token B; ");
  EXPECT_EQ(checkpoints(parse_model("palm-tiny,block=serial,ffn=gelu,rope=none")),
            "embed BLE; norm BLE; norm2 BLE; final_norm BLE; q BLHQ; k BLKQ; v BLKQ; "
            "k_cache BMKQ; v_cache BMKQ; score BLHM; max BLH; exp BLHM; denom BLH; attn BLHQ; "
            "gate BLF; hidden BLF; attn_out BLE; mid BLE; ffn_out BLE; out BLE; logits BV; "
            "token B; ");
  for (const CheckpointSpec& spec : checkpoint_specs(parse_model("palm-tiny"))) {
    const std::set<std::string> outer{"embed", "final_norm", "logits", "token"};
    EXPECT_EQ(spec.per_layer, !outer.contains(spec.name)) << spec.name;
    EXPECT_EQ(spec.integer, spec.name == "token") << spec.name;
  }
}

TEST(Registry, NamesCheckpoints) {
  EXPECT_EQ(checkpoint_id(prefill_pass(0), 1, "gate"), "prefill.c0.layer1.gate");
  EXPECT_EQ(checkpoint_id(decode_pass(1), 0, "k_rot"), "decode.1.layer0.k_rot");
  EXPECT_EQ(checkpoint_id(decode_pass(1), -1, "embed"), "decode.1.embed");
}

RC_GTEST_PROP(Registry, NamesAreUniqueAndShapesFollowDims, ()) {
  const ModelConfig c = draw_model(50);
  const std::map<char, std::int64_t> extents{{'E', c.E}, {'F', c.F}, {'H', c.H},        {'K', c.K},
                                             {'Q', c.Q}, {'V', c.V}, {'P', c.positions}};
  std::set<std::string> names;
  for (const WeightSpec& spec : weight_specs(c)) {
    RC_ASSERT(names.insert(spec.name).second);
    RC_ASSERT(spec.shape.size() == spec.dims.size());
    RC_ASSERT(spec.matrix == (spec.dims.size() > 1 && spec.name[0] != 'r' &&
                              spec.name.find(".b") == std::string::npos));
    for (std::size_t i = 0; i < spec.dims.size(); ++i) {
      const auto known = extents.find(spec.dims[i]);
      if (known != extents.end()) RC_ASSERT(spec.shape[i] == known->second);
    }
  }
  RC_ASSERT(names.contains("unembed") == !c.tied);
}

}  // namespace
}  // namespace shardproof
