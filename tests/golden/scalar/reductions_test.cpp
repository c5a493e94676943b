// acc=bf16 and wire=bf16 of sums of partials, under the judge of the f32 regime: of every schedule
// and loop the rule of docs/spec.md section 1.2 is equal, and each rounding that is left out, or
// made where none is, is found.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/golden/scalar/faulty.h"
#include "weights/base/bf16.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

using namespace faulty;

constexpr NumberFormat f32 = NumberFormat::f32, bf16 = NumberFormat::bf16;

/// What a rule does at each of the places where it might round.
struct Rule {
  Schedule order;
  bool first, hop;  ///< of a ring: the first hop, the others; of a group or a tree hop: all terms
  bool behind, ahead;      ///< of both-full: the hops that reach the owner
  bool owner;              ///< the owner's partial
  bool addition, meeting;  ///< the last addition of both-full is where two sums meet
  bool finished;
};

float keep(bool rounds, float v) { return rounds ? round_to_bf16(v) : v; }

Loop ring_of(Schedule order, Loop loop) {
  if (loop != Loop::none) return loop;
  if (order == Schedule::ring) return Loop::one_way;
  return order == Schedule::biring ? Loop::both_half : Loop::none;
}

/// One sum round a ring: of the chips that are `first`, first − 1, ..., `last` steps from the
/// owner.
float lane(const Rule& rule, const std::vector<float>& t, std::size_t owner, std::size_t step,
           std::size_t first, std::size_t last = 1) {
  const std::size_t K = t.size();
  float total = t[(owner + step * first) % K];
  for (std::size_t d = first; d-- > last;)
    total = keep(rule.addition,
                 keep(d + 1 == first ? rule.first : rule.hop, total) + t[(owner + step * d) % K]);
  return total;
}

/// The sum by this rule.
float by(const Rule& rule, const Summed& s) {
  std::vector<float> t = s.terms;
  const std::size_t K = t.size();
  const Loop loop = ring_of(rule.order, s.loop);
  if (loop != Loop::none) {
    t[s.chunk] = keep(rule.owner, t[s.chunk]);
    if (loop != Loop::both_full)
      return keep(
          rule.finished,
          lane(rule, t, s.chunk, loop == Loop::both_half && s.second_half() ? 1 : K - 1, K - 1, 0));
    float total =
        keep(rule.addition, keep(rule.behind, lane(rule, t, s.chunk, K - 1, K / 2)) + t[s.chunk]);
    if (K > 2)
      total = keep(rule.meeting, total + keep(rule.ahead, lane(rule, t, s.chunk, 1, (K - 1) / 2)));
    return keep(rule.finished, total);
  }
  for (std::size_t i = 0; i < K; ++i) t[i] = keep(i == s.chunk ? rule.owner : rule.hop, t[i]);
  if (rule.order == Schedule::tree)
    while (t.size() > 1) {
      std::vector<float> up;
      for (std::size_t i = 0; i < t.size(); i += 2)
        up.push_back(i + 1 < t.size() ? keep(rule.addition, t[i] + t[i + 1]) : t[i]);
      t = std::move(up);
    }
  else
    for (std::size_t i = 1; i < K; ++i) t[0] = keep(rule.addition, t[0] + t[i]);
  return keep(rule.finished, t[0]);
}

Rule right(Schedule order, Loop loop, NumberFormat acc, NumberFormat wire, OpKind kind) {
  const bool w = wire == bf16, a = acc == bf16;
  return {.order = order,
          .first = w,
          .hop = w,
          .behind = w,
          .ahead = w,
          .owner = w && ring_of(order, loop) == Loop::none,
          .addition = a,
          .meeting = a,
          .finished = w && kind == OpKind::all_reduce};
}

/// Of S of the W matrices, in ops with this loop: by one rule in the first half of a chunk, by
/// another in the second.
Fault reduced(const Rule& first, const Rule& second, OpKind kind, Loop loop) {
  const Fault fault = reduction_by(
      [=](const Summed& s) { return by(s.second_half() ? second : first, s); }, kind, 3);
  return [=](const Op& op, const Args& args, Results& results) {
    const ValueRow* const row = value_row(op.results[0].role);
    return row != nullptr && row->acc && op.loop == loop && fault(op, args, results);
  };
}

/// The rule with another choice at one place.
Rule but(Rule rule, bool Rule::*place) {
  rule.*place = !(rule.*place);
  return rule;
}

void expect_each_rounding_judged(const Case& c, OpKind kind, bool long_lanes) {
  const auto& [order, loop, acc, wire] =
      std::tie(c.numerics.schedule, c.numerics.loop, c.numerics.acc, c.numerics.wire);
  const Rule rule = right(order, loop, acc, wire, kind);
  const Loop ring = ring_of(order, loop);
  expect_equal(c, reduced(rule, rule, kind, loop));
  const std::vector<std::pair<bool Rule::*, std::string>> places{
      {&Rule::first, "first hop"},        {&Rule::hop, "other hops"},
      {&Rule::behind, "sum from behind"}, {&Rule::ahead, "sum from ahead"},
      {&Rule::owner, "owner's partial"},  {&Rule::addition, "additions"},
      {&Rule::meeting, "last addition"},  {&Rule::finished, "finished sum"}};
  for (const auto& [place, name] : places) {
    SCOPED_TRACE(print_case(c) + ": " + name);
    const bool meets = place == &Rule::behind || place == &Rule::ahead || place == &Rule::meeting;
    if (meets && ring != Loop::both_full) continue;
    if (place == &Rule::first && ring == Loop::none) continue;
    // Each sum of both-full of five chips has one hop before that to the owner.
    if (place == &Rule::hop && ring == Loop::both_full && !long_lanes) continue;
    // With acc=bf16 partials and sums are of bf16 already: the wire rounds nothing more.
    if (acc == bf16 && place != &Rule::addition && place != &Rule::meeting) continue;
    // In a ring's all_reduce every sum travels: wire rounds what acc does.
    if (ring != Loop::none && kind == OpKind::all_reduce && wire == bf16 &&
        place == &Rule::addition)
      continue;
    const Rule wrong = but(rule, place);
    expect_caught(c, reduced(wrong, wrong, kind, loop));
    if (ring == Loop::both_half) {
      expect_caught(c, reduced(wrong, rule, kind, loop));
      expect_caught(c, reduced(rule, wrong, kind, loop));
    }
  }
}

/// A strategy whose projections are reduce-scattered, and one with an all_reduce of them (k and v).
class ScalarReduction
    : public testing::TestWithParam<std::tuple<Schedule, NumberFormat, NumberFormat, OpKind>> {};

TEST_P(ScalarReduction, EachRoundingIsJudged) {
  const auto [order, acc, wire, kind] = GetParam();
  Case c = rounding_case(order, acc, wire);
  c.decode = c.prefill;
  expect_each_rounding_judged(c, kind, false);
}

INSTANTIATE_TEST_SUITE_P(All, ScalarReduction,
                         testing::Combine(testing::Values(Schedule::group, Schedule::ring,
                                                          Schedule::tree, Schedule::biring),
                                          testing::Values(f32, bf16), testing::Values(f32, bf16),
                                          testing::Values(OpKind::reduce_scatter,
                                                          OpKind::all_reduce)));

/// Reduce-scatters of rings of five and of three chips, or of fifteen, in chunks of five.
class ScalarLoopedReduction
    : public testing::TestWithParam<std::tuple<const char*, Loop, NumberFormat, NumberFormat>> {};

TEST_P(ScalarLoopedReduction, EachRoundingIsJudged) {
  const auto [strategy, loop, acc, wire] = GetParam();
  Case c = parse_case(
      "torus=5x1x3 model=palm-tiny,layers=1,E=75,F=75,H=15,Q=4,V=60 regime=f32 schedule=tree "
      "batch=15 prompt=3 chunk=2 gen=2 seed=5 prefill=" +
      std::string(strategy));
  c.numerics.loop = loop;
  c.numerics.acc = acc;
  c.numerics.wire = wire;
  expect_each_rounding_judged(c, OpKind::reduce_scatter, strategy == std::string("ws1d:heads"));
}

INSTANTIATE_TEST_SUITE_P(All, ScalarLoopedReduction,
                         testing::Combine(testing::Values("ws2d:heads", "ws1d:heads"),
                                          testing::Values(Loop::one_way, Loop::both_full,
                                                          Loop::both_half),
                                          testing::Values(f32, bf16), testing::Values(f32, bf16)));

}  // namespace
}  // namespace shardproof
