// Whole cases on every kernel that this machine can run, not on the best alone.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/run/inference.h"
#include "golden/verify/verify.h"
#include "weights/base/isa.h"

namespace shardproof {
namespace {

TEST(InstructionSets, JudgeAndComputeAlike) {
  int tried = 0;
  for (const char* regime : {"", " regime=f32", " regime=f32 acc=bf16"}) {
    const Case c = parse_case(
        "torus=1x2x3 model=palm-tiny,layers=1,E=36,F=60,H=6,K=3,Q=4,V=42 prefill=wg-xyz:batch "
        "decode=ws2d:batch batch=6 prompt=3 chunk=2 gen=3 seed=5" +
        std::string(regime));
    std::vector<std::int32_t> generated;
    for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
      if (!has_isa(isa)) continue;
      const ForcedIsa forced(isa);
      OracleMemo memo;
      EXPECT_EQ(verify_case(c, memo).verdict, Verdict::equal) << to_string(isa) << regime;
      const auto known = memo.get(c);
      Threads one(1);
      const auto tokens = run_inference(make_plan(c), known->weights, known->prompt, one).data;
      if (generated.empty()) generated = tokens;
      EXPECT_EQ(tokens, generated) << to_string(isa) << regime;
      ++tried;
    }
  }
  EXPECT_GE(tried, 3);
}

}  // namespace
}  // namespace shardproof
