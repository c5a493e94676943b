#include "golden/verify.h"

#include "tests/golden/case_gen.h"
#include "weights/error.h"

namespace shardproof {
namespace {

RC_GTEST_PROP(Verify, EveryCheckpointOfEveryCaseEqualsTheOracle, ()) {
  const Case c = *any_case();
  RC_TAG(c.prefill.to_string());
  RC_CLASSIFY(c.torus.chips() >= 12, "12 chips or more");
  OracleMemo memo;
  const Judgement j = verify_case(c, memo);
  if (j.verdict != Verdict::equal) RC_LOG() << j.explanation();
  RC_ASSERT(j.verdict == Verdict::equal);
}

TEST(Verify, EqualForAnyNumberOfThreads) {
  OracleMemo memo;
  for (std::uint64_t i = 0; i < 12; ++i)
    for (int threads : {1, 2, 7}) {
      VerifyOptions options;
      options.threads = threads;
      const Case c = cases::draw(21, i);
      EXPECT_EQ(verify_case(c, memo, options).verdict, Verdict::equal) << print_case(c);
    }
}

TEST(Verify, HazardsDoNotChangeABit) {
  OracleMemo memo;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const Case c = cases::draw(23, i);
    VerifyOptions options;
    options.threads = i % 3 == 0 ? 2 : 1;
    for (const Hazards& hazards : {Hazards{}, Hazards::hostile(i)}) {
      options.hazards = hazards;
      EXPECT_EQ(verify_case(c, memo, options).verdict, Verdict::equal) << print_case(c);
    }
  }
}

/// Plants a fault in every layer program: the norm statistics stay local to the chip's shard of E.
void keep_statistics_local(InferencePrograms& programs) {
  for (Program* program : {&programs.prefill.layer, &programs.decode.layer})
    for (Op& op : program->ops)
      if (op.results[0].name == "sa") op.removed = true;
}

TEST(PlantedFault, ShrinksToOneLine) {
  OracleMemo memo;
  VerifyOptions planted;
  planted.mutate = keep_statistics_local;
  planted.check_types = false;
  const auto fails = [&](const Case& c) {
    return verify_case(c, memo, planted).verdict == Verdict::different;
  };
  std::uint64_t i = 0;
  while (!fails(cases::draw(5, i))) ++i;
  const Case found = cases::draw(5, i);
  const Case least = cases::shrink(found, fails);
  EXPECT_TRUE(fails(least));
  EXPECT_EQ(verify_case(least, memo).verdict, Verdict::equal);  // the fault's, not the engine's
  EXPECT_EQ(parse_case(print_case(least)), least);
  // Two chips along x are the fewest that show it, in one layer and one prefill token.
  EXPECT_EQ(least.torus, Torus(2, 1, 1)) << print_case(least);
  EXPECT_EQ(least.model.layers, 1);
  EXPECT_EQ(least.prompt, 1);
  EXPECT_EQ(least.model.E, 2) << print_case(least);
  const Judgement j = verify_case(least, memo, planted);
  EXPECT_EQ(j.difference->step, "prefill.c0.layer0.sa");
}

TEST(PlantedFault, IsFoundByTheProperty) {
  // The same fault under RapidCheck's own search and shrinking.
  OracleMemo memo;
  VerifyOptions planted;
  planted.mutate = keep_statistics_local;
  planted.check_types = false;
  const auto result = rc::detail::checkTestable(
      [&] {
        const Case c = *any_case();
        RC_ASSERT(verify_case(c, memo, planted).verdict == Verdict::equal);
      },
      rc::detail::TestMetadata(), rc::detail::TestParams());
  rc::detail::FailureResult failure;
  ASSERT_TRUE(result.match(failure));
  ASSERT_EQ(failure.counterExample.size(), 1U);
  EXPECT_NE(failure.counterExample[0].second.find("shardproof verify --case \"torus=2x1x1"),
            std::string::npos)
      << failure.counterExample[0].second;
}

TEST(Verify, RefusesMoreMemoryThanTheMachineHas) {
  const Case c = parse_case("torus=16x16x16 model=palm-tiny,E=1048576,F=16777216,H=4096,V=4096");
  try {
    require_memory(c);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.label(), "memory_c1");
    EXPECT_NE(std::string(error.what()).find("GiB"), std::string::npos);
  }
  require_memory(parse_case(""));
}

}  // namespace
}  // namespace shardproof
