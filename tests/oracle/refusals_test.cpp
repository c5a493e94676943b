// What the oracle refuses, by label, and what it says.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "oracle/oracle.h"
#include "weights/error.h"
#include "weights/generator.h"

namespace shardproof::oracle {
namespace {

struct Small {
  ModelConfig config = parse_model("palm-tiny,layers=1,E=8,F=8,H=2,Q=4,V=10,positions=8");
  Weights weights = generate_weights(config, 1);
  Request request;

  Small() {
    request.prompt = generate_prompt(config, 1, 2, 5);
    request.gen = 2;
  }
};

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

std::string refusal(const Small& small) {
  return refusal([&] { run(small.weights, small.request); });
}

TEST(OracleRefuses, NothingOfAGoodRequest) { EXPECT_EQ(refusal(Small()), "accepted"); }

TEST(OracleRefuses, AnotherRegime) {
  Small s;
  s.request.numerics.regime = Regime::f32;
  EXPECT_TRUE(refusal(s).starts_with("oracle_regime: "));
}

TEST(OracleRefuses, ATokenOutsideTheVocabulary) {
  Small s;
  s.request.prompt.data[7] = 10;
  EXPECT_EQ(refusal(s), "oracle_range: prompt[1,2] is 10, a token id must be in [0, 10)");
  s.request.prompt.data[7] = -1;
  EXPECT_TRUE(refusal(s).starts_with("oracle_range: prompt[1,2] is -1"));
}

TEST(OracleRefuses, MorePositionsThanTheTableHas) {
  Small s;
  s.request.gen = 4;  // positions 0 ... 7
  EXPECT_EQ(refusal(s), "accepted");
  s.request.gen = 5;
  EXPECT_TRUE(refusal(s).starts_with("oracle_range: prompt=5 and gen=5"));
}

TEST(OracleRefuses, AnEmptyRun) {
  Small s;
  s.request.gen = 0;
  EXPECT_TRUE(refusal(s).starts_with("oracle_range: "));
  s = Small();
  s.request.chunk = -1;
  EXPECT_TRUE(refusal(s).starts_with("oracle_range: "));
  s = Small();
  s.request.prompt = IntTensor({2, 0});
  EXPECT_TRUE(refusal(s).starts_with("oracle_range: "));
}

TEST(OracleRefuses, ANonFiniteCheckpointNamingIdAndIndex) {
  Small s;
  std::map<std::string, Tensor> tensors(s.weights.all().begin(), s.weights.all().end());
  tensors.at("layer0.norm").data[3] = 1e3F;
  Tensor& gate = tensors.at("layer0.w_gate");
  gate.data[3 * 8 + 5] = 3e38F;  // [3, 5]
  s.weights = Weights(s.config, tensors);
  const std::string said = refusal(s);
  EXPECT_TRUE(said.starts_with("oracle_finite: prefill.c0.layer0.gate[0,0,5] is ")) << said;
}

TEST(OracleRefuses, IdsItHasNotGot) {
  const Small s;
  const Answer answer = run(s.weights, s.request);
  EXPECT_EQ(answer.raw_of("decode.1.layer0.denom").shape, (Shape{2, 1, 2}));
  EXPECT_EQ(answer.unstored_of("decode.1.layer0.hidden").shape, (Shape{2, 1, 8}));
  for (const char* id : {"decode.1.layer0.hidden", "decode.2.layer0.gate", "gate", ""})
    EXPECT_TRUE(refusal([&] { answer.raw_of(id); }).starts_with("oracle_id: ")) << id;
  EXPECT_TRUE(refusal([&] { answer.unstored_of("decode.9.embed"); }).starts_with("oracle_id: "));
}

}  // namespace
}  // namespace shardproof::oracle
