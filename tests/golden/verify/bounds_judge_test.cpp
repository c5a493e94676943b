// The judge of bounds over our own f32 runs: right runs of every arithmetic are within, and a fault
// of any op is found on the chip that has it.
#include "golden/verify/bounds_judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/golden/equal_cases.h"
#include "tests/golden/every_op.h"
#include "tests/golden/scalar/faulty.h"
#include "weights/base/bf16.h"

namespace shardproof {
namespace {

using namespace faulty;

struct Outcome {
  std::vector<Finding> findings;
  bounds::Tightness tightness;
  int planted = 0;
};

Outcome bounded(const Case& c, const Fault& fault) {
  JudgedRun<BoundsJudge> run(c);
  Faulty shown(run.judge, fault);
  run.run(shown);
  return {run.findings.all(), run.judge.tightness(), shown.planted};
}

/// Keys of the model, and of the case.
Case family(const std::string& model, const std::string& keys = "") {
  return parse_case(
      "torus=5x1x3 prefill=ws2d:heads decode=wg-xyz:batch prompt=3 chunk=2 gen=3 seed=5 regime=f32 "
      "model=palm-tiny,layers=1,E=60,F=120,H=15,Q=4,V=60" +
      model + " " + keys);
}

TEST(BoundsJudge, FindsNothingInRightRuns) {
  expect_equal_cases("bounds of every arithmetic", [](const Case& c, const Judgement& j) {
    ASSERT_TRUE(j.bounds) << print_case(c);
    EXPECT_GT(j.bounds->within, 100) << print_case(c);
    // Where whole sums are kept or sent in bf16 some bounds say little, and are reported so.
    if (c.numerics.acc == NumberFormat::f32 && c.numerics.wire == NumberFormat::f32) {
      EXPECT_EQ(j.bounds->loose, 0) << print_case(c) << j.bounds->to_string();
    }
    EXPECT_GE(j.bounds->least_slack, 1.0) << print_case(c) << j.bounds->to_string();
  });
}

/// Changes the last number of the last chip, where `change` returns another.
Fault spoiled(OpKind kind, std::size_t result, const std::function<float(float)>& change) {
  return [=](const Op& op, const Args&, Results& results) {
    if (op.kind != kind || !results.contains(result)) return false;
    Sharded& to = results.at(result);
    const int last = to.torus().chips() - 1;
    if (to.stores_int32()) {
      to.i32_of(last).back() += 1;
      return true;
    }
    float& v = to.f32_of(last).back();
    v = change(v);
    return true;
  };
}

/// Whether a step is found wrong where the last number of a value of this op and place becomes
/// `value` when it is shown for the first time; and what is expected of it.
std::optional<Finding> found_of_first(const Case& c, OpKind kind, std::size_t result,
                                      const std::function<float(float)>& change) {
  std::string op, value;
  const Fault every = spoiled(kind, result, change);
  const Outcome o = bounded(c, [&](const Op& now, const Args& args, Results& results) {
    if (!op.empty() || !every(now, args, results)) return false;
    op = now.to_string();
    value = "." + now.results[result].name;
    return true;
  });
  EXPECT_EQ(o.planted, 1);
  if (o.findings.empty() || o.findings[0].op != op || !o.findings[0].step.ends_with(value) ||
      o.findings[0].chip != c.torus.name(c.torus.chips() - 1))
    return std::nullopt;
  return o.findings[0];
}

/// Of a value that has an interval: its ends are right, and what is next to them is found.
void expect_sharp(const Case& c, OpKind kind, std::size_t result, const Finding& found) {
  float low = 0.0F, high = 0.0F;
  if (std::sscanf(found.expected.c_str(), "in [%f, %f]", &low, &high) != 2) return;
  EXPECT_FALSE(found_of_first(c, kind, result, [&](float) { return low; })) << found.expected;
  EXPECT_FALSE(found_of_first(c, kind, result, [&](float) { return high; })) << found.expected;
  for (const float next : {std::nextafter(low, -INFINITY), std::nextafter(high, INFINITY)})
    EXPECT_TRUE(found_of_first(c, kind, result, [&](float) { return next; })) << found.expected;
}

TEST(BoundsJudge, FindsAFaultOfEveryOp) {
  // By a hundredth and more, and by what no comparison of numbers sees.
  const std::vector<std::function<float(float)>> changes{
      [](float v) { return v * 1.01F + 0.01F; }, [](float) { return NAN; },
      [](float v) { return std::nextafter(-v, 9.0F) - 1e-3F; }};
  std::set<OpKind> tried;
  for (const Case& c : cases_of_every_op(" regime=f32")) {
    const RunPlan plan = make_plan(c);
    std::set<std::pair<OpKind, std::size_t>> here;
    for (const PhasePrograms* phase : {&plan.prefill, &plan.decode})
      for (const Program* program : {&phase->embed, &phase->layer, &phase->head, &phase->sample})
        for (const Op& op : program->ops)
          for (std::size_t r = 0; r < op.results.size(); ++r)
            if (!tried.contains(op.kind)) here.insert({op.kind, r});
    for (const auto& [kind, result] : here) {
      tried.insert(kind);
      SCOPED_TRACE(print_case(c) + " " + std::string(to_string(kind)));
      for (const auto& change : changes) {
        const Outcome o = bounded(c, spoiled(kind, result, change));
        EXPECT_GT(o.planted, 0);
        ASSERT_FALSE(o.findings.empty());
        EXPECT_EQ(o.findings[0].chip, c.torus.name(c.torus.chips() - 1));
        EXPECT_TRUE(o.findings[0].op.starts_with(to_string(kind))) << o.findings[0].op;
        EXPECT_FALSE(o.findings[0].index.empty());
        EXPECT_NE(o.findings[0].actual, "");
      }
      const auto found = found_of_first(c, kind, result, changes[0]);
      ASSERT_TRUE(found);
      expect_sharp(c, kind, result, *found);
    }
  }
  // See text_steps_test.cpp.
  tried.insert({OpKind::turn, OpKind::gather, OpKind::stored_sum, OpKind::mean, OpKind::top,
                OpKind::with_prefix});
  for (const OpRow& row : all_ops())
    EXPECT_TRUE(tried.contains(row.kind)) << row.name << ": no case here has it";
}

/// Signs of zeros are the regime's, too: the score of a slot that is not seen is +0.
TEST(BoundsJudge, FindsTheSignOfAZero) {
  const Outcome o = bounded(family(""), [](const Op& op, const Args&, Results& results) {
    if (op.kind != OpKind::attend || !results.contains(0)) return false;
    for (float& v : results.at(0).f32_of(0))
      if (v == 0.0F) {
        v = -0.0F;
        return true;
      }
    return false;
  });
  EXPECT_GT(o.planted, 0);
  ASSERT_FALSE(o.findings.empty());
  EXPECT_EQ(o.findings[0].actual, "-0 (0x80000000)");
}

/// A sum kept in bf16 has wide bounds; one that was not rounded is found all the same.
TEST(BoundsJudge, FindsWhatIsNoNumberOfItsFormat) {
  for (OpKind kind : {OpKind::einsum, OpKind::reduce_scatter}) {
    // Of a sum that has more than one term; those of the lookup are zeros but for one.
    const Fault every = spoiled(kind, 0, [](float v) { return std::nextafter(v, INFINITY); });
    const Outcome o =
        bounded(family("", "acc=bf16"), [&](const Op& op, const Args& args, Results& results) {
          return op.results[0].name != "er" && every(op, args, results);
        });
    EXPECT_GT(o.planted, 0);
    const auto between = [&](const Finding& f) {
      float low = 0.0F, high = 0.0F, actual = 0.0F;
      return f.op.starts_with(to_string(kind)) &&
             std::sscanf(f.expected.c_str(), "in [%f, %f]", &low, &high) == 2 &&
             std::sscanf(f.actual.c_str(), "%f", &actual) == 1 && low < actual && actual < high;
    };
    EXPECT_TRUE(std::any_of(o.findings.begin(), o.findings.end(), between)) << to_string(kind);
  }
}

/// Weights of zeros make sums, functions and norms of zeros, of both signs.
TEST(BoundsJudge, FindsNothingInRunsOfZeros) {
  for (const auto& [model, keys] : {std::pair{"", ""},
                                    {",ffn=geglu", ""},
                                    {"", "schedule=tree"},
                                    {"", "wire=bf16"},
                                    {"", "acc=bf16"},
                                    {",rope=alibi", ""},
                                    {",norm=layernorm,bias=all", ""}}) {
    SCOPED_TRACE(std::string(model) + keys);
    const Case c = family(model, keys);
    const RunPlan plan = make_plan(c);
    OracleMemo memo;
    const auto known = memo.get(c);
    std::map<std::string, Tensor> tensors = known->weights.tensors();
    for (auto& [name, tensor] : tensors)
      for (const char* zero : {"wo", "w_out", "wq", "w_gate", "embed"})
        if (name.ends_with(zero))
          for (std::size_t i = 0; i < tensor.data.size(); ++i)
            tensor.data[i] = std::copysign(0.0F, tensor.data[i]);
    const Weights zeros(known->weights.config(), std::move(tensors), known->weights.stored_type());
    Findings findings;
    BoundsJudge judge(plan, findings);
    Threads threads(1);
    run_inference(plan, zeros, known->prompt, threads, &judge, Hazards::hostile(), {}, &findings);
    EXPECT_TRUE(findings.all().empty()) << findings.all()[0].to_string();
    EXPECT_GT(judge.tightness().within, 100);
  }
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

TEST(Tightness, CountsByTheWordsOfAllVerdicts) {
  bounds::Tightness t;
  using bounds::Kind;
  const auto extent = [](double reach, double found, double scale) {
    return bounds::Extent{.worst = reach, .likely = reach, .found = found, .scale = scale};
  };
  t.add("a", Kind::running, extent(0.011, 0.0101, 1.0), 3.0);
  t.add("n", Kind::running, extent(0.011, 0.0099, 1.0), 4.0);
  t.add("b", Kind::running, extent(0.009, 0.005, 1.0), 2.0);
  t.add("c", Kind::running, extent(NAN, NAN, 1.0), 0.0);
  t.add("d", Kind::one_value, extent(0.0, 0.0, 0.0), 1.0);
  t.add("d", Kind::running, extent(0.0, 0.0, 0.0), 1.0);  // of two terms
  t.add("e", Kind::formula, extent(0.0, 0.0, 1.0), 1.0);
  t.add("f", Kind::running, extent(1.0, 1.0, INFINITY), 9.0);  // as big as what it is measured by
  EXPECT_EQ(t.within, 4);
  EXPECT_EQ(t.running, 2);
  EXPECT_EQ(t.formula, 1);
  EXPECT_EQ(t.near, 1);
  EXPECT_EQ(t.loose, 3);
  EXPECT_EQ(t.tightest, "b");
  EXPECT_EQ(t.median_slack(), 4.0);
  bounds::Tightness sum;
  sum.add(t);
  EXPECT_EQ(sum.near, 1);
  EXPECT_EQ(sum.to_string(),
            "bounds: 4 values within (sums: 2, functions: 1, of one right value: 1), 1 near, 3 "
            "loose; slack of sums: least 2.00 at b, median 4.0");
}

}  // namespace
}  // namespace shardproof
