// Weights that a case's seed makes: of base-2 models folded, of int8 ones after their codes.
#include "engine/run/case_weights.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/ops/int8_weights.h"
#include "weights/storage/fold.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

Case with(const std::string& softmax, const std::string& weights) {
  return parse_case(
      fmt::format("torus=1x1x1 model=palm-tiny,layers=1{} weights={} seed=4", softmax, weights));
}

void expect_same(const Weights& a, const Weights& b) {
  EXPECT_EQ(a.config(), b.config());
  EXPECT_EQ(a.stored_type(), b.stored_type());
  ASSERT_EQ(a.names(), b.names());
  for (const auto& [name, tensor] : a.tensors()) EXPECT_EQ(tensor.data, b.at(name)->data) << name;
}

TEST(CaseWeights, OfAPlainModelAreGenerated) {
  for (const char* weights : {"f32", "bf16", "int8"}) {
    const Case c = with("", weights);
    expect_same(generated_weights(c), generate_weights(c.model, 4));
  }
}

TEST(CaseWeights, OfABaseTwoModelAreFolded) {
  const Weights plain = generate_weights(with("", "f32").model, 4);
  for (const char* weights : {"f32", "bf16"})
    expect_same(generated_weights(with(",softmax=base2", weights)), fold(plain));
}

TEST(CaseWeights, AreQuantizedBeforeTheyAreFolded) {
  const Weights codes = int8_weights(generate_weights(with("", "f32").model, 4));
  const Weights made = generated_weights(with(",softmax=base2", "int8"));
  expect_same(made, fold(codes));
  EXPECT_EQ(made.at("layer0.wq")->data, codes.at("layer0.wq")->data);
  EXPECT_NE(made.at("layer0.wq_scale")->data, codes.at("layer0.wq_scale")->data);
}

}  // namespace
}  // namespace shardproof
