// The model family: the presets beside the palm ones, ALiBi, base 2 and the bias of the logits are
// equal under several tables.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "tests/golden/changed_plan.h"
#include "tests/golden/equal_cases.h"

namespace shardproof {
namespace {

class ModelFamily : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ModelFamily, IsEqualUnderTheTables) {
  expect_equal_cases("family", nullptr, std::string("@model = ") + GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(
    All, ModelFamily,
    testing::Values(std::pair{"llama", "llama"}, std::pair{"gptj", "gptj"},
                    std::pair{"falcon", "falcon"}, std::pair{"alibi", "palm-tiny,K=6,rope=alibi"},
                    std::pair{"biased", "palm-tiny,bias=ffn,unembed_bias=true"},
                    std::pair{"base2", "palm-tiny,K=6,softmax=base2"},
                    std::pair{"base2_llama", "llama,softmax=base2"},
                    std::pair{"base2_gptj", "gptj,softmax=base2"},
                    std::pair{"base2_falcon", "falcon,softmax=base2"},
                    std::pair{"base2_alibi",
                              "palm-tiny,K=6,rope=alibi,bias=all,unembed_bias=true,"
                              "softmax=base2"}),
    [](const auto& test) { return std::string(test.param.first); });

/// What the type check says of the head after a change.
std::string typed(const std::function<void(Program& head)>& change) {
  OracleMemo memo;
  const auto both = [&](RunPlan& plan) { change(plan.prefill.head), change(plan.decode.head); };
  const Judgement j = judge_changed(
      parse_case("torus=3x1x2 model=palm-tiny,unembed_bias=true batch=6"), both, memo);
  EXPECT_NE(j.verdict, Verdict::equal);
  return j.explanation();
}

TEST(LogitBiasFaults, OneThatIsAddedToPartialSumsOrLaidOutOtherwiseIsIllTyped) {
  const std::string early = typed([](Program& head) {
    for (Op& op : head.ops)
      if (op.kind == OpKind::bias) op.args[0] = "z";
  });
  EXPECT_NE(early.find("bias_c1"), std::string::npos) << early;
  for (const char* layout : {"V_xyz", "V", "V_zy"}) {
    const std::string other = typed([&](Program& head) {
      for (ValueDecl& input : head.inputs)
        if (input.role.to_string() == "weight unembed_bias") input.layout = Layout::parse(layout);
    });
    EXPECT_NE(other.find("bias_c3"), std::string::npos) << other;
  }
}

TEST(HandOvers, OfEveryPrefillAreEqual) { expect_equal_cases("hand-overs"); }

}  // namespace
}  // namespace shardproof
