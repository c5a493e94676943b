#include "golden/cases.h"

#include <fmt/format.h>

#include <set>

#include "engine/run/plan.h"
#include "golden/coverage.h"
#include "golden/strata.h"
#include "tests/golden/case_gen.h"

namespace shardproof {
namespace {

TEST(StandardMatrix, HasTheFirstStrategiesOnEveryTorusForBothKindsOfHeads) {
  std::set<std::string> seen;
  for (const Case& c : cases::standard_matrix())
    if (c.prefill == c.decode)
      seen.insert(c.torus.to_string() + c.prefill.to_string() + (c.model.K == 1 ? " mqa" : " mha"));
  for (const char* torus : {"1x1x1", "2x2x2", "4x2x3", "3x2x2", "2x3x1", "1x4x2"})
    for (const char* s : {"ws1d:heads", "ws1d:batch", "ws2d:heads", "ws2d:batch", "wg-xyz:batch"})
      for (const char* heads : {" mqa", " mha"})
        EXPECT_TRUE(seen.contains(std::string(torus) + s + heads)) << torus << s << heads;
  EXPECT_GE(cases::standard_matrix().size(), 600U);
}

TEST(StandardMatrix, HasEveryStrategyForAllKindsOfHeadsAndOn64Chips) {
  std::set<std::string> seen;
  for (const Case& c : cases::standard_matrix()) {
    make_plan(c);
    seen.insert(fmt::format("{} {} {}", c.prefill.to_string(), c.torus.to_string(), c.model.K));
  }
  for (const Strategy& s : all_strategies()) {
    for (const char* torus : {"4x2x3", "2x2x2", "3x2x2", "1x4x2"})
      for (int K : {1, 6, 24}) {
        const std::string row = fmt::format("{} {} {}", s.to_string(), torus, K);
        EXPECT_TRUE(seen.contains(row)) << row;
      }
    EXPECT_TRUE(seen.contains(s.to_string() + " 4x4x4 1")) << s.to_string();
  }
}

// Every cell is met by as many cases in a row as there are strata, whatever the seed.
TEST(Strata, MeetEveryCell) {
  std::set<std::string> met;
  for (const cases::strata::Stratum& stratum : cases::strata::all_strata()) {
    Case c;
    c.prefill = stratum.prefill;
    c.decode = stratum.decode;
    c.model.block = stratum.kind.block;
    c.model.K = stratum.kind.heads == cases::strata::Heads::multiquery  ? 1
                : stratum.kind.heads == cases::strata::Heads::multihead ? c.model.H
                                                                        : 2;
    c.numerics.regime = stratum.kind.regime;
    c.numerics.act = stratum.kind.act;
    c.numerics.weights = stratum.kind.weights;
    c.prompt = 4;
    c.chunk = stratum.kind.chunked ? 2 : 4;
    EXPECT_EQ(cases::strata::kind_of(c), stratum.kind);
    for (const std::string& cell : cases::strata::cells_of(c)) met.insert(cell);
  }
  const std::vector<std::string>& legal = cases::strata::legal_cells();
  EXPECT_EQ(met, std::set<std::string>(legal.begin(), legal.end()));
  EXPECT_LE(cases::strata::all_strata().size(), 5000U);
  std::set<const cases::strata::Stratum*> of_a_seed;
  for (std::uint64_t i = 0; i < cases::strata::all_strata().size(); ++i)
    of_a_seed.insert(&cases::strata::stratum_of(8, 1000 + i));
  EXPECT_EQ(of_a_seed.size(), cases::strata::all_strata().size());
}

// A case that is drawn for a stratum is of it.
TEST(Draw, IsOfItsStratum) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Case c = cases::draw(5, i);
    const cases::strata::Stratum& stratum = cases::strata::stratum_of(5, i);
    EXPECT_EQ(c.prefill, stratum.prefill);
    EXPECT_EQ(c.decode, stratum.decode);
    EXPECT_EQ(cases::strata::kind_of(c), stratum.kind) << print_case(c);
    EXPECT_GT(c.gen, stratum.hands_over() ? 1 : 0);
  }
}

TEST(Coverage, MissesACellThatIsNeverDrawn) {
  cases::Coverage no_bf16;
  for (std::uint64_t i = 0; i < 200; ++i) {
    Case c = cases::draw(1, i);
    c.numerics.act = ActType::f32;
    no_bf16.add(c);
    no_bf16.add(c);
  }
  EXPECT_NE(no_bf16.shortfall().find("cells are met"), std::string::npos) << no_bf16.shortfall();
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
            "torus=3x3x5 model=palm-tiny,E=27,F=18,H=9,K=9,V=90,ffn=gelu-erf,tied=false"
            " prefill=dp-z:2d decode=dp-z:1d block=serial weights=f32 act=bf16 regime=f32"
            " schedule=tree acc=f32 wire=bf16 batch=10 prompt=6 chunk=1 gen=4 seed=177546");
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

TEST(Coverage, MissesARoundingThatIsNeverDrawn) {
  const auto shortfall = [](auto&& change) {
    cases::Coverage coverage;
    for (std::uint64_t i = 0; i < 500; ++i) {
      Case c = cases::draw(1, i);
      change(c);
      coverage.add(c);
    }
    return coverage.shortfall();
  };
  const auto says = [](const std::string& text, const char* what) {
    return text.find(what) != std::string::npos;
  };
  EXPECT_PRED2(says, shortfall([](Case& c) { c.numerics.acc = FloatType::f32; }), "acc bf16");
  EXPECT_PRED2(says, shortfall([](Case& c) { c.numerics.wire = FloatType::f32; }), "wire bf16");
  EXPECT_PRED2(says, shortfall([](Case& c) { c.model.cache = CacheType::as_act; }), "cache bf16");
  EXPECT_EQ(shortfall([](Case&) {}), "");
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

RC_GTEST_PROP(Draw, IsLegal, ()) { make_plan(*any_case()); }

RC_GTEST_PROP(Simpler, IsLegalAndEnds, ()) {
  Case c = *any_case();
  int steps = 0;
  for (;;) {
    const std::vector<Case> next = cases::simpler(c);
    for (const Case& candidate : next) make_plan(candidate);
    if (next.empty()) break;
    c = next[*rc::gen::inRange<std::size_t>(0, next.size())];
    RC_ASSERT(++steps < 100);
  }
  RC_ASSERT(c.torus.chips() == 1);
}

}  // namespace
}  // namespace shardproof
