// Base-2 models: what is said of the plain model.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/run/case_weights.h"
#include "golden/verify/verify.h"

namespace shardproof {
namespace {

Case case_of(const std::string& keys, const std::string& more = "") {
  return parse_case(fmt::format(
      "torus=3x1x2 model=palm-tiny,layers=1,E=12,F=12,H=12,K=3,Q=4,V=12,softmax=base2{} "
      "prefill=ws2d:heads batch=6 prompt=4 gen=3 seed=5 {}",
      keys, more));
}

Judgement judgement_of(const Case& c, const VerifyOptions& options = {}) {
  OracleMemo memo;
  return verify_case(c, memo, options);
}

TEST(BaseTwo, FollowsThePlainModelInEveryForm) {
  // Weights and factors are rounded to 24 bits, of bf16 weights to 8. What rounding alone moves is
  // smaller by as much, and certainly by half as many bits; what was folded wrongly is off by its
  // own measure in both.
  constexpr double kHalf = 256.0;
  for (const char* keys :
       {"", ",tied=false", ",bias=all", ",bias=all,norm=layernorm", ",rope=alibi",
        ",unembed_bias=true", ",unembed_bias=true,tied=false,logit_scale=0.5", ",ffn=geglu",
        ",eps=0.5", ",logit_scale=3,embed_scale=2", ",rope=none,ffn=gelu,bias=ffn"})
    for (const char* more : {"", "block=serial", "weights=int8", "weights=int8 block=serial"}) {
      const Judgement j = judgement_of(case_of(keys, more));
      ASSERT_EQ(j.verdict, Verdict::equal) << keys << " " << more << "\n" << j.explanation();
      ASSERT_TRUE(j.from_plain) << keys;
      EXPECT_GT(j.from_plain->logits, 0.0) << keys << " " << more;
      const std::string block = std::string(more).ends_with("serial") ? "block=serial " : "";
      const Judgement coarse = judgement_of(case_of(keys, block + "weights=bf16"));
      ASSERT_TRUE(coarse.from_plain) << keys;
      EXPECT_LT(j.from_plain->logits * kHalf, coarse.from_plain->logits) << keys << " " << more;
      EXPECT_GT(j.from_plain->tokens, 0);
    }
}

TEST(BaseTwo, ThePlainModelIsReportedAndNotJudged) {
  const Judgement j = judgement_of(case_of("", "weights=bf16"));  // where rounding is coarse
  EXPECT_EQ(j.verdict, Verdict::equal);
  ASSERT_TRUE(j.from_plain);
  EXPECT_GT(j.from_plain->logits, judgement_of(case_of("")).from_plain->logits);
  EXPECT_LE(j.from_plain->equal_tokens, j.from_plain->tokens);
  EXPECT_EQ(j.from_plain->equal_tokens == j.from_plain->tokens, j.from_plain->apart.empty());
  EXPECT_TRUE(j.from_plain->to_string().starts_with("from the plain model (not judged): logits "));
}

TEST(BaseTwo, NothingIsReportedWithoutAPlainModel) {
  EXPECT_FALSE(
      judgement_of(parse_case("torus=1x1x1 model=palm-tiny,layers=1,E=12,F=12,H=12,Q=4,V=12"))
          .from_plain);
  const Judgement in_field = judgement_of(case_of("", "regime=field"));
  EXPECT_EQ(in_field.verdict, Verdict::equal);
  EXPECT_FALSE(in_field.from_plain);
  const Case c = case_of("");
  const Weights given = generated_weights(c);
  const Judgement j = judgement_of(c, {.weights = &given});
  EXPECT_EQ(j.verdict, Verdict::equal);
  EXPECT_FALSE(j.from_plain);
}

TEST(BaseTwo, ReportsAddUpToTheWorst) {
  FromPlain all;
  all.add({.logits = 1e-6, .equal_tokens = 3, .tokens = 4, .apart = "decode.2"});
  all.add({.logits = 1e-7, .equal_tokens = 5, .tokens = 5, .apart = ""});
  EXPECT_EQ(all.to_string(),
            "from the plain model (not judged): logits 1.0e-06; 8 of 9 tokens agree");
  EXPECT_EQ(all.apart, "decode.2");
}

}  // namespace
}  // namespace shardproof
