#include "golden/cases.h"
#include "golden/coverage.h"

#include <set>

#include "tests/golden/case_gen.h"

namespace shardproof {
namespace {

TEST(StandardMatrix, HasEveryStrategyOnEveryTorusForBothKindsOfHeads) {
  std::set<std::string> seen;
  for (const Case& c : cases::standard_matrix()) {
    require_legal(c);
    if (c.prefill == c.decode)
      seen.insert(c.torus.to_string() + c.prefill.to_string() + (c.model.K == 1 ? " mqa" : " mha"));
  }
  for (const char* torus : {"1x1x1", "2x2x2", "4x2x3", "3x2x2", "2x3x1", "1x4x2"})
    for (const Strategy& s : all_strategies())
      for (const char* heads : {" mqa", " mha"})
        EXPECT_TRUE(seen.contains(torus + s.to_string() + heads))
            << torus << s.to_string() << heads;
  EXPECT_TRUE(seen.contains("4x4x4ws2d:batch mqa"));
  EXPECT_GE(cases::standard_matrix().size(), 60U);
}

TEST(Draw, IsAFunctionOfSeedAndIndex) {
  for (std::uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(cases::draw(7, i), cases::draw(7, i));
    EXPECT_FALSE(cases::draw(7, i) == cases::draw(8, i)) << i;
  }
}

// By another compiler, on another machine: a seed is what people tell each other.
TEST(Draw, IsTheSameCaseWhoeverCompiledIt) {
  EXPECT_EQ(print_case(cases::draw(1, 1)),
            "torus=2x2x3 model=palm-tiny,E=48,F=12,H=12,K=12,V=12,norm=layernorm,bias=all,rope=none"
            " prefill=ws1d:batch decode=ws1d:batch block=serial weights=bf16 act=f32 regime=exact"
            " schedule=group batch=12 prompt=7 chunk=7 gen=3 seed=943957");
}

TEST(Draw, CoversWhatItMustForAnySeed) {
  for (std::uint64_t seed : {1U, 2U, 3U, 99U}) {
    cases::Coverage coverage;
    for (std::uint64_t i = 0; i < 500; ++i) {
      const Case c = cases::draw(seed, i);
      ASSERT_LE(multiply_adds(c), cases::kMostMultiplyAdds);
      coverage.add(c);
    }
    EXPECT_EQ(coverage.shortfall(), "") << coverage.to_string();
  }
}

TEST(Coverage, CallsALazyDrawLazy) {
  cases::Coverage cubes;
  for (std::uint64_t i = 0; i < 100; ++i) {
    Case c = cases::draw(1, i);
    c.torus = Torus(2, 2, 2);
    cubes.add(c);
  }
  EXPECT_NE(cubes.shortfall().find("axes not all equal"), std::string::npos) << cubes.shortfall();
  EXPECT_NE(cases::Coverage().shortfall(), "");
}

TEST(Coverage, MissesAScheduleThatIsNeverDrawn) {
  cases::Coverage no_ring;
  for (std::uint64_t i = 0; i < 500; ++i) {
    Case c = cases::draw(1, i);
    if (c.numerics.schedule == Schedule::ring) c.numerics.schedule = Schedule::tree;
    no_ring.add(c);
  }
  EXPECT_NE(no_ring.shortfall().find("schedule ring"), std::string::npos) << no_ring.shortfall();
}

TEST(Coverage, DemandsNothingOfAFewCases) {
  cases::Coverage few;
  Case c = cases::draw(1, 0);
  c.torus = Torus(2, 2, 2);
  for (std::int64_t i = 0; i < cases::Coverage::kLeastCases; ++i) {
    EXPECT_EQ(i == 0 ? "" : few.shortfall(), "") << i;
    few.add(c);
  }
  EXPECT_NE(few.shortfall(), "");
}

RC_GTEST_PROP(Draw, IsLegal, ()) { require_legal(*any_case()); }

RC_GTEST_PROP(Simpler, IsLegalAndEnds, ()) {
  Case c = *any_case();
  int steps = 0;
  for (;;) {
    const std::vector<Case> next = cases::simpler(c);
    for (const Case& candidate : next) require_legal(candidate);
    if (next.empty()) break;
    c = next[*rc::gen::inRange<std::size_t>(0, next.size())];
    RC_ASSERT(++steps < 100);
  }
  RC_ASSERT(c.torus.chips() == 1);
}

}  // namespace
}  // namespace shardproof
