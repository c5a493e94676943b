// The judge of bounds over our own f32 runs: right runs of every arithmetic are within, and a fault
// of any op is found on the chip that has it.
#include "golden/bounds/judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/golden/scalar/faulty.h"
#include "weights/bf16.h"

namespace shardproof {
namespace {

using namespace faulty;

struct Outcome {
  std::vector<Finding> findings;
  bounds::Tightness tightness;
  int planted = 0;
};

Outcome bounded(const Case& c, const Fault& fault) {
  OracleMemo memo;
  const auto known = memo.get(c);
  const RunPlan plan = make_plan(c);
  Findings findings;
  BoundsJudge judge(plan, findings);
  Faulty shown(judge, fault);
  Threads threads(1);
  run_inference(plan, known->weights, known->prompt, threads, &shown, Hazards::hostile(), {},
                &findings);
  return {findings.all(), judge.tightness(), shown.planted};
}

Case family(const std::string& keys) {
  std::string model = "palm-tiny,layers=1,E=60,F=120,H=15,Q=4,V=60", line;
  (keys.find("model:") == 0 ? model : line) += keys.find("model:") == 0 ? keys.substr(6) : keys;
  const bool released = line.find("numerics=") != std::string::npos;
  return parse_case(
      "torus=5x1x3 prefill=ws2d:heads decode=wg-xyz:batch prompt=3 chunk=2 gen=3 "
      "seed=5 model=" +
      model + (released ? " " : " regime=f32 ") + line);
}

const char* const kFamilies[] = {"",
                                 "schedule=ring",
                                 "schedule=tree",
                                 "schedule=biring",
                                 "loop=one-way",
                                 "loop=both-full",
                                 "loop=both-half",
                                 "act=bf16",
                                 "weights=bf16",
                                 "weights=int8",
                                 "acc=bf16",
                                 "wire=bf16",
                                 "wire=bf16 schedule=ring",
                                 "wire=bf16 acc=bf16 schedule=biring",
                                 "numerics=released",
                                 "block=serial",
                                 "model:,norm=layernorm,bias=all",
                                 "model:,ffn=geglu",
                                 "model:,ffn=gelu",
                                 "model:,ffn=gelu-erf,bias=ffn",
                                 "model:,rope=alibi",
                                 "model:,rope=interleaved,rotary=0.5",
                                 "model:,rope=none,K=15",
                                 "model:,tied=false,unembed_bias=true,embed_scale=1.7"};

TEST(BoundsJudge, FindsNothingInRightRuns) {
  const Fault none = [](const Op&, const Args&, Results&) { return false; };
  for (const char* keys : kFamilies) {
    SCOPED_TRACE(keys);
    const Outcome o = bounded(family(keys), none);
    ASSERT_TRUE(o.findings.empty()) << o.findings[0].to_string();
    EXPECT_GT(o.tightness.within, 100);
    // Where whole sums are kept or sent in bf16 some bounds say little, and are reported so.
    const std::string text = keys;
    const bool coarse = text.find("acc") != std::string::npos ||
                        text.find("wire") != std::string::npos ||
                        text.find("released") != std::string::npos;
    if (!coarse) {
      EXPECT_EQ(o.tightness.loose, 0) << o.tightness.to_string();
    }
    EXPECT_GE(o.tightness.least_slack, 1.0) << o.tightness.to_string();
  }
}

/// Changes the last number of the last chip.
Fault spoiled(OpKind kind, std::size_t result, const std::function<float(float)>& change) {
  return [=](const Op& op, const Args&, Results& results) {
    if (op.kind != kind || !results.contains(result)) return false;
    Sharded& to = results.at(result);
    const int last = to.torus().chips() - 1;
    if (to.holds_integers()) {
      to.i32_of(last).back() += 1;
      return true;
    }
    float& v = to.f32_of(last).back();
    v = change(v);
    return true;
  };
}

TEST(BoundsJudge, FindsAFaultOfEveryOp) {
  // By a hundredth and more, and by what no comparison of numbers sees.
  const std::vector<std::function<float(float)>> changes{
      [](float v) { return v * 1.01F + 0.01F; }, [](float) { return NAN; },
      [](float v) { return std::nextafter(-v, 9.0F) - 1e-3F; }};
  std::set<OpKind> tried;
  for (const char* keys : {"", "act=bf16", "weights=int8 loop=both-full",
                           "model:,norm=layernorm,bias=all,ffn=geglu,rope=interleaved",
                           "model:,ffn=gelu", "model:,ffn=gelu-erf,rope=alibi"}) {
    const Case c = family(keys);
    const RunPlan plan = make_plan(c);
    std::set<std::pair<OpKind, std::size_t>> here;
    for (const PhasePrograms* phase : {&plan.prefill, &plan.decode})
      for (const Program* program : {&phase->embed, &phase->layer, &phase->head, &phase->sample})
        for (const Op& op : program->ops)
          for (std::size_t r = 0; r < op.results.size(); ++r)
            if (!tried.contains(op.kind)) here.insert({op.kind, r});
    for (const auto& [kind, result] : here) {
      tried.insert(kind);
      for (const auto& change : changes) {
        SCOPED_TRACE(std::string(keys) + " " + std::string(to_string(kind)));
        const Outcome o = bounded(c, spoiled(kind, result, change));
        EXPECT_GT(o.planted, 0);
        ASSERT_FALSE(o.findings.empty());
        EXPECT_EQ(o.findings[0].chip, c.torus.name(c.torus.chips() - 1));
        EXPECT_TRUE(o.findings[0].op.starts_with(to_string(kind))) << o.findings[0].op;
        EXPECT_FALSE(o.findings[0].index.empty());
        EXPECT_NE(o.findings[0].actual, "");
      }
    }
  }
  std::set<OpKind> never;
  for (const OpRow& row : all_ops())
    if (!tried.contains(row.kind)) never.insert(row.kind);
  // What only other strategies have.
  for (OpKind kind : never)
    EXPECT_TRUE((std::set<OpKind>{OpKind::permute_axes, OpKind::split_dim, OpKind::merge_dim,
                                  OpKind::slice, OpKind::all_to_all, OpKind::all_reduce})
                    .contains(kind))
        << to_string(kind);
}

float rounded_operand(std::int64_t K, const Factors& a, const Factors& b) {
  float c = 0.0F;
  for (std::int64_t k = 0; k < K; ++k) c = std::fma(round_to_bf16(a(k)), b(k), c);
  return c;
}
float one_dropped(std::int64_t K, const Factors& a, const Factors& b) {
  float c = 0.0F;
  for (std::int64_t k = 0; k < K; ++k)
    if (k != K / 2) c = std::fma(a(k), b(k), c);
  return c;
}
float one_twice(std::int64_t K, const Factors& a, const Factors& b) {
  float c = std::fma(a(K / 2), b(K / 2), 0.0F);
  for (std::int64_t k = 0; k < K; ++k) c = std::fma(a(k), b(k), c);
  return c;
}
float scaled(std::int64_t K, const Factors& a, const Factors& b) {
  float c = 0.0F;
  for (std::int64_t k = 0; k < K; ++k) c = std::fma(a(k), b(k), c);
  return c * 1.001F;
}
float right(std::int64_t K, const Factors& a, const Factors& b) {
  float c = 0.0F;
  for (std::int64_t k = 0; k < K; ++k) c = std::fma(a(k), b(k), c);
  return c;
}
TEST(BoundsJudge, FindsWrongProducts) {
  const Case c = f32_case(Schedule::ring);
  EXPECT_TRUE(bounded(c, product(right)).findings.empty());
  for (auto* wrong : {rounded_operand, one_dropped, one_twice, scaled}) {
    const Outcome o = bounded(c, product(wrong));
    EXPECT_GT(o.planted, 0);
    ASSERT_FALSE(o.findings.empty());
    EXPECT_NE(o.findings[0].expected.find("in ["), std::string::npos) << o.findings[0].expected;
    EXPECT_EQ(o.findings[0].step.find("prefill.c0"), 0U) << o.findings[0].step;
  }
}

TEST(BoundsJudge, FindsWrongReductions) {
  using Terms = std::vector<float>;
  const auto sum = [](const Terms& t) {
    float s = t[0];
    for (std::size_t i = 1; i < t.size(); ++i) s += t[i];
    return s;
  };
  const std::vector<std::function<float(const Terms&, std::size_t)>> faults{
      [&](const Terms& t, std::size_t) {
        return sum({t.begin() + 1, t.end()});
      },
      [&](const Terms& t, std::size_t) { return sum(t) + t.back(); },
      [&](const Terms& t, std::size_t) { return sum(t) / static_cast<float>(t.size()); },
      [&](const Terms& t, std::size_t) {
        Terms rounded = t;
        for (float& x : rounded) x = round_to_bf16(x);
        return sum(rounded);
      }};
  for (Schedule schedule : {Schedule::group, Schedule::ring, Schedule::tree, Schedule::biring})
    for (OpKind kind : {OpKind::reduce_scatter, OpKind::all_reduce})
      for (const auto& fault : faults) {
        const Outcome o = bounded(f32_case(schedule), reduction(fault, kind));
        EXPECT_GT(o.planted, 0);
        EXPECT_FALSE(o.findings.empty()) << to_string(kind);
      }
}

TEST(VerifyF32, HasBothJudges) {
  OracleMemo memo;
  const Judgement f32 = verify_case(f32_case(Schedule::tree), memo);
  ASSERT_TRUE(f32.bounds.has_value());
  EXPECT_EQ(f32.verdict, Verdict::equal) << f32.explanation();
  EXPECT_GT(f32.bounds->within, 100);
  EXPECT_EQ(f32.bounds->loose, 0);
  Case exact = f32_case(Schedule::group);
  exact.numerics.regime = Regime::exact;
  EXPECT_FALSE(verify_case(exact, memo).bounds.has_value());
}

TEST(Tightness, CountsWhatIsWide) {
  bounds::Tightness t;
  t.add("a", 0.011, 1.0, 3.0);
  t.add("b", 0.009, 1.0, 2.0);
  t.add("c", NAN, 1.0, 0.0);
  t.add("d", 0.0, 0.0, 0.0);
  EXPECT_EQ(t.within, 2);
  EXPECT_EQ(t.loose, 2);
  EXPECT_EQ(t.tightest, "b");
  bounds::Tightness sum;
  sum.add(t);
  EXPECT_EQ(sum.to_string(), "bounds: 2 values within, 2 loose, least slack 2 at b");
}

}  // namespace
}  // namespace shardproof
