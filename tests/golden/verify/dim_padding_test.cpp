// Runs with padded heads and ids: equal to the unsharded model, which has neither, in every regime;
// what stands in padding is nobody's, and what padding must not do is seen.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "engine/ops/int8_weights.h"
#include "engine/run/inference.h"
#include "engine/run/memory.h"
#include "golden/compare/block_map.h"
#include "golden/compare/case_padding.h"
#include "golden/verify/verify.h"
#include "tests/golden/equal_cases.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

/// Of 8 heads two are padding, of 16 ids five.
constexpr const char* kModel = "palm-tiny,layers=1,E=8,F=8,H=6,K=3,Q=2,V=11";
constexpr const char* kPads = " pad_heads=8 pad_vocab=16";

std::string line(const std::string& model, const std::string& rest = "") {
  return fmt::format(
      "torus=2x2x2 model={} prefill=ws2d:heads decode=ws2d:batch batch=8 prompt=3 chunk=2 gen=3 "
      "seed=6{} {}",
      model, kPads, rest);
}

Judgement judged(const std::string& of, const VerifyOptions& options = {}) {
  OracleMemo memo;
  return verify_case(parse_case(of), memo, options);
}

TEST(PaddedDims, AreEqualInEveryRegime) { expect_equal_cases("padding in every regime"); }

TEST(PaddedDims, AreEqualForAllHeads) { expect_equal_cases("padding for all heads"); }

TEST(PaddedDims, AreEachEqualAlone) { expect_equal_cases("padding of one dim"); }

TEST(PaddedDims, TwentyHeadsAreEqualOn24Chips) { expect_equal_cases("twenty heads on 24 chips"); }

/// An observer that changes nothing but looks at values of one name.
class Looker : public Observer {
 public:
  Looker(std::string name, std::function<void(const Sharded&)> look)
      : name_(std::move(name)), look_(std::move(look)) {}
  void observe(const Scope&, const Program&, const Op*, const ValueDecl& declared,
               const Sharded& value) override {
    if (declared.role.to_string() == name_ && !value.layout().is_partial()) look_(value);
  }

 private:
  std::string name_;
  std::function<void(const Sharded&)> look_;
};

/// With one kv head a padded head attends to real values: zeros of W_O keep them out.
TEST(PaddedDims, APaddedHeadsAttentionNeedNotBeZero) {
  bool met = false;
  Looker looker("attn", [&](const Sharded& value) {
    ASSERT_EQ(value.shape()[2], 8);
    const Tensor attn = assemble(value);
    for (std::size_t i = 0; i < attn.data.size(); ++i)
      met = met || (i / 2 % 8 >= 6 && attn.data[i] != 0.0F);
  });
  const Judgement j =
      judged(line("palm-tiny,layers=1,E=8,F=8,H=6,K=1,Q=2,V=11"), {.observer = &looker});
  EXPECT_EQ(j.verdict, Verdict::equal) << j.explanation();
  EXPECT_TRUE(met);
}

/// Changes elements of what a step makes, those of padding or those of the model, on every chip.
VerifyOptions changing(const std::string& role, bool padding, float to) {
  VerifyOptions options;
  options.faults.result = [=](const Scope&, const Program&, const Op&, const ValueDecl& declared,
                              Sharded& value) {
    if (declared.role.to_string() != role || value.layout().is_partial()) return;
    const DimPadding pads(parse_case(line(kModel)).model, 8, 16);
    Shape own;
    for (std::size_t d = 0; d < value.shape().size(); ++d) {
      const char letter = value.layout().dims()[d].letter;
      own.push_back(letter == 'H' ? 6 : letter == 'K' ? 3 : letter == 'V' ? 11 : value.shape()[d]);
    }
    std::vector<bool> is_padding;
    each_placed(own, value.shape(),
                [&](std::int64_t, std::int64_t of) { is_padding.push_back(of < 0); });
    for (int chip = 0; chip < value.torus().chips(); ++chip) {
      const std::span<float> shard = value.f32_of(chip);
      judged_elements(value.layout(), value.shape(), value.torus(), chip,
                      [&](std::int64_t local, std::int64_t global) {
                        if (is_padding[static_cast<std::size_t>(global)] == padding)
                          shard[static_cast<std::size_t>(local)] = to;
                        return false;
                      });
    }
  };
  return options;
}

TEST(PaddedDims, WhatStandsInPaddingIsNobodys) {
  // Of heads: scores, sums and attn of any size; of ids: logits above all others.
  for (const char* role : {"q", "q_rot", "k", "v", "score", "attn", "logits"})
    EXPECT_EQ(judged(line(kModel), changing(role, true, 1e6F)).verdict, Verdict::equal) << role;
  for (const char* role : {"q", "q_rot", "k", "v", "score", "attn", "logits"}) {
    const Judgement j = judged(line(kModel), changing(role, false, 1e6F));
    EXPECT_EQ(j.verdict, Verdict::different) << role;
    ASSERT_NE(j.difference(), nullptr) << role;
    EXPECT_TRUE(j.difference()->checkpoint.ends_with(role)) << j.difference()->checkpoint;
  }
}

/// The f32 regime has bits for padding, too: its scalar model pads by itself.
TEST(PaddedDims, OfTheF32RegimeHaveBits) {
  const Judgement j = judged(line(kModel, "regime=f32"));
  EXPECT_EQ(j.verdict, Verdict::equal) << j.explanation();
  EXPECT_TRUE(j.drift.has_value());
  // Values with padded dims are measured without it.
  for (const char* name : {"q", "k", "score", "attn", "logits", "k_cache"})
    EXPECT_TRUE(j.drift->relative.contains(name)) << name;
}

/// The padding of weights is zero, of scales 1, and judged.
TEST(PaddedDims, OfWeightsAreZero) {
  for (const char* name : {"layer0.wq", "layer0.wk", "layer0.wv", "layer0.wo", "embed"}) {
    VerifyOptions options;
    options.faults.weight = [&](const std::string& id, Sharded& value) {
      // The last element of the last chip is padding of H, K or V in each of them.
      if (id == name) value.f32_of(value.torus().chips() - 1).back() = 1.0F;
    };
    const Judgement j = judged(line(kModel), options);
    EXPECT_EQ(j.verdict, Verdict::different) << name;
    ASSERT_NE(j.difference(), nullptr) << name;
    EXPECT_EQ(j.difference()->checkpoint, std::string("weight ") + name);
    EXPECT_EQ(j.difference()->expected, "0 (0x00000000)");
  }
}

/// Of scales it is 1: of those that chips make of zeros, and of those of a file.
TEST(PaddedDims, OfScalesAreOne) {
  bool met = false;
  Looker looker("weight wq_scale", [&](const Sharded& value) {
    const Tensor scale = assemble(value);
    for (std::size_t i = 6 * 2; i < scale.data.size(); ++i) {
      EXPECT_EQ(scale.data[i], 1.0F);
      met = true;
    }
  });
  VerifyOptions options;
  options.observer = &looker;
  const Case c = parse_case(line(kModel, "weights=int8"));
  const Weights held = int8_weights(generate_weights(c.model, c.seed));
  for (const Weights* weights : {static_cast<const Weights*>(nullptr), &held})
    for (const char* regime : {"", " regime=f32"}) {
      met = false;
      options.weights = weights;
      const Judgement j = judged(line(kModel, "weights=int8") + regime, options);
      EXPECT_EQ(j.verdict, Verdict::equal) << j.explanation();
      EXPECT_TRUE(met);
    }
}

/// A vocabulary all of whose logits are negative: the zeros of padded ids would be the largest.
TEST(PaddedDims, OfIdsTakeNoPartInTheLargestLogit) {
  const Case c = parse_case(line("palm-tiny,layers=1,E=8,F=8,H=6,K=3,Q=2,V=11,unembed_bias=true"));
  Weights weights = generate_weights(c.model, c.seed);
  std::map<std::string, Tensor> tensors = weights.tensors();
  for (float& b : tensors.at("unembed_bias").data) b -= 1000.0F;
  weights = Weights(c.model, std::move(tensors));
  for (const char* rest : {"", "regime=f32"}) {
    Case of = c;
    if (*rest != '\0') of.numerics.regime = Regime::f32;
    OracleMemo memo;
    const Judgement j = verify_case(of, memo, {.weights = &weights});
    EXPECT_EQ(j.verdict, Verdict::equal) << rest << j.explanation();
  }
}

TEST(PaddedDims, OfIdsAreNoIds) {
  const Case c = parse_case(line(kModel));
  const RunPlan plan = make_plan(c);
  IntTensor prompt(Shape{8, 3}, 11);  // the first id of padding
  Threads threads(1);
  try {
    run_inference(plan, generate_weights(c.model, c.seed), prompt, threads);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.label(), "embed_range");
    EXPECT_EQ(error.message(), "id 11 is outside a vocabulary of 11");
  }
}

/// A block of the vocabulary without an id has a candidate that nothing reads.
TEST(PaddedDims, BlocksWithoutAnIdHaveNoCandidate) {
  int empty = 0;
  Looker looker("stat candidates", [&](const Sharded& value) {
    const Tensor best = assemble(value);
    for (std::size_t i = 0; i < best.data.size(); ++i)
      if (best.shape[1] == 8 && i % 8 >= 6)  // of two ids each
        empty += best.data[i] == std::numeric_limits<float>::max() ? 1 : 0;
  });
  EXPECT_EQ(judged(line(kModel), {.observer = &looker}).verdict, Verdict::equal);
  EXPECT_GT(empty, 0);
}

/// What a layer sends is what the longer model sends.
TEST(PaddedDims, AreCountedAndEstimated) {
  const TypedPlan padded = make_typed_plan(parse_case(line(kModel)));
  std::string longer_line = line("palm-tiny,layers=1,E=8,F=8,H=8,K=4,Q=2,V=16");
  longer_line.erase(longer_line.find(kPads), std::string(kPads).size());
  const TypedPlan longer = make_typed_plan(parse_case(longer_line));
  ASSERT_TRUE(padded.types && longer.types);
  for (std::size_t i = 0; i < longer.types->passes.size(); ++i)
    for (const auto& [name, type] : longer.types->passes[i].last.layer)
      EXPECT_EQ(padded.types->passes[i].last.layer.at(name).shape, type.shape) << name;
  EXPECT_LT(cost::estimated_bytes(padded.plan, *padded.types),
            cost::estimated_bytes(longer.plan, *longer.types));
}

}  // namespace
}  // namespace shardproof
