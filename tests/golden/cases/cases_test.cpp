#include "golden/cases/cases.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "engine/run/plan.h"
#include "golden/cases/coverage.h"
#include "golden/cases/strata.h"
#include "tests/golden/case_gen.h"
#include "tests/golden/drawn.h"
#include "tests/sanitized.h"

namespace shardproof {
namespace {

/// A case that is nothing but of its stratum.
Case plain_case(const cases::strata::Stratum& stratum) {
  using cases::strata::TorusClass;
  Case c;
  c.prefill = stratum.prefill;
  c.decode = stratum.decode;
  const std::map<TorusClass, Torus> tori{{TorusClass::one_chip, Torus(1, 1, 1)},
                                         {TorusClass::axis_of_1, Torus(2, 1, 3)},
                                         {TorusClass::equal, Torus(2, 2, 2)},
                                         {TorusClass::two_equal, Torus(2, 3, 2)},
                                         {TorusClass::different, Torus(4, 2, 3)}};
  c.torus = tori.at(stratum.kind.torus);
  c.model.block = stratum.kind.block;
  c.model.K = stratum.kind.heads == cases::strata::Heads::multiquery  ? 1
              : stratum.kind.heads == cases::strata::Heads::multihead ? c.model.H
                                                                      : 2;
  c.numerics.regime = stratum.kind.regime;
  c.numerics.act = stratum.kind.act;
  c.numerics.weights = stratum.kind.weights;
  c.numerics.loop = stratum.kind.loop;
  c.prompt = 4;
  c.chunk = stratum.kind.chunked ? 2 : 4;
  return c;
}

// Every cell is met by a round of cases, whatever the seed; and a round is 3,000 cases at most.
TEST(Strata, MeetEveryCell) {
  const std::vector<std::string>& legal = cases::strata::legal_cells();
  for (std::uint64_t round : {0U, 1U}) {
    std::set<std::string> met;
    for (const cases::strata::Stratum& stratum : cases::strata::all_strata(round)) {
      const Case c = plain_case(stratum);
      EXPECT_EQ(cases::strata::kind_of(c), stratum.kind);
      for (const std::string& cell : cases::strata::cells_of(c)) met.insert(cell);
    }
    EXPECT_EQ(met, std::set<std::string>(legal.begin(), legal.end()));
    EXPECT_LE(cases::strata::all_strata(round).size(), 3000U);
  }
  const std::uint64_t n = cases::strata::all_strata(0).size();
  for (std::uint64_t seed : {7U, 8U}) {
    std::set<const cases::strata::Stratum*> of_a_seed;
    for (std::uint64_t i = 0; i < n; ++i) of_a_seed.insert(&cases::strata::stratum_of(seed, i));
    EXPECT_EQ(of_a_seed.size(), n);
    for (std::uint64_t i = 0; i < n; ++i) of_a_seed.insert(&cases::strata::stratum_of(seed, n + i));
    EXPECT_EQ(of_a_seed.size(), 2 * n) << "the other half comes next";
  }
}

// Both rounds together have every value of the five properties with every other, and every
// strategy with each; the field has every value of the other four in every round.
TEST(Strata, TwoRoundsMeetEveryCombination) {
  std::set<std::string> met;
  std::map<std::uint64_t, std::set<std::string>> of_field;
  for (std::uint64_t round : {0U, 1U})
    for (const cases::strata::Stratum& stratum : cases::strata::all_strata(round))
      for (const Strategy* s : {&stratum.prefill, &stratum.decode}) {
        cases::strata::Kind kind = stratum.kind;
        kind.block = Block::parallel, kind.heads = cases::strata::Heads::multiquery;
        kind.chunked = false;
        if (kind.regime == Regime::field) {
          of_field[round].insert(to_string(kind));
          continue;
        }
        met.insert(s->to_string() + " " + to_string(kind));
      }
  EXPECT_EQ(met.size(), all_strategies().size() * 3 * 2 * 2 * 4 * 5);
  for (std::uint64_t round : {0U, 1U}) EXPECT_EQ(of_field[round].size(), 3U * 2 * 4 * 5);
}

TEST(Strata, WithoutADecodeStepNothingIsHandedOver) {
  Case c = parse_case("torus=4x2x3 prefill=wg-xyz:batch decode=ws2d:batch batch=24 gen=1");
  Case alone = c;
  alone.decode = c.prefill;
  EXPECT_EQ(cases::strata::cells_of(c), cases::strata::cells_of(alone));
  c.gen = 2;
  EXPECT_EQ(cases::strata::cells_of(c).size(), 2 * cases::strata::cells_of(alone).size());
}

TEST(Strata, ATorusHasAClass) {
  using cases::strata::class_of;
  using cases::strata::TorusClass;
  EXPECT_EQ(class_of(Torus(1, 1, 1)), TorusClass::one_chip);
  EXPECT_EQ(class_of(Torus(1, 4, 1)), TorusClass::axis_of_1);
  EXPECT_EQ(class_of(Torus(2, 1, 2)), TorusClass::axis_of_1);
  EXPECT_EQ(class_of(Torus(3, 3, 3)), TorusClass::equal);
  EXPECT_EQ(class_of(Torus(3, 2, 2)), TorusClass::two_equal);
  EXPECT_EQ(class_of(Torus(2, 3, 2)), TorusClass::two_equal);
  EXPECT_EQ(class_of(Torus(4, 2, 3)), TorusClass::different);
}

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
  const std::uint64_t round = cases::strata::all_strata(0).size();
  cases::Coverage all, no_int8;
  for (std::uint64_t i = 0; i < round; ++i) {
    Case c = i < drawn().size() ? drawn()[i] : cases::draw(1, i);
    all.add(c);
    // One cell alone: what int8 has with all of these.
    if (c.numerics.weights == NumberFormat::int8 && c.numerics.loop == Loop::both_half &&
        c.numerics.regime == Regime::f32 && c.prefill.to_string() == "ws2d:batch")
      c.numerics.weights = NumberFormat::bf16;
    no_int8.add(c);
  }
  EXPECT_EQ(all.shortfall(), "");
  EXPECT_NE(no_int8.shortfall().find("none of 'ws2d:batch weights=int8 "), std::string::npos)
      << no_int8.shortfall();
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
            "torus=3x3x1 model=palm-tiny,layers=1,E=27,F=54,H=12,K=2,Q=2,V=63"
            " prefill=wg-x:natural decode=ws2d:norm-first-kv block=parallel weights=f32 act=f32"
            " regime=exact schedule=group loop=none acc=f32 wire=f32 batch=9 prompt=4 chunk=3 gen=3"
            " seed=213491 sample=random temperature=3 top_k=19 top_p=0.5");
}

// Of a legal size for the prefill, beside rows of any lengths, and all the same of its stratum.
TEST(Draw, SharesPrefixes) {
  std::set<std::string> beside;
  for (const Case& c : drawn()) {
    if (!c.prefix.given()) continue;
    EXPECT_EQ(c.prefix.length % smallest_length(c.prefill, c.torus), 0) << print_case(c);
    EXPECT_LE(c.prefix.rows, c.batch) << print_case(c);
    EXPECT_LT(c.prefix.length, c.prompt) << print_case(c);
    for (const std::int64_t length : c.lengths.cycle)
      EXPECT_LT(c.prefix.length, length) << print_case(c);
    beside.insert(c.lengths.ragged ? "ragged" : c.lengths.given() ? "lengths" : "whole rows");
    beside.insert(std::string(to_string(c.numerics.regime)));
    beside.insert(c.sampling.sample == Sample::random ? "random" : "greedy");
    if (smallest_length(c.prefill, c.torus) > 1) beside.insert("positions sharded");
  }
  EXPECT_EQ(beside, (std::set<std::string>{"ragged", "lengths", "whole rows", "exact", "f32",
                                           "field", "random", "greedy", "positions sharded"}));
}

TEST(Draw, CoversWhatItMustForAnySeed) {
  OneInN chosen(2, "seeds");
  for (std::uint64_t seed : {1U, 2U, 3U, 99U}) {
    if (!chosen()) continue;
    cases::Coverage coverage;
    for (std::uint64_t i = 0; i < 500; ++i) {
      const Case c = seed == 1 ? drawn()[i] : cases::draw(seed, i);
      ASSERT_LE(multiply_adds(c), cases::kMostMultiplyAdds);
      coverage.add(c);
    }
    EXPECT_EQ(coverage.shortfall(), "") << coverage.to_string();
  }
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

// Every proposal of the drawn case, then of each the one that is taken: over all cases any of them.
RC_GTEST_PROP(Simpler, IsLegalAndEnds, ()) {
  Case c = *any_case();
  static const OneInN announced(5, "drawn cases");
  if (kSanitized && c.seed % 5 != 0) return;
  for (const Case& candidate : cases::simpler(c)) make_plan(candidate);
  int steps = 0;
  for (;;) {
    const std::vector<Case> next = cases::simpler(c);
    if (next.empty()) break;
    c = next[*rc::gen::inRange<std::size_t>(0, next.size())];
    make_plan(c);
    RC_ASSERT(++steps < 100);
  }
  RC_ASSERT(c.torus.chips() == 1);
}

}  // namespace
}  // namespace shardproof
