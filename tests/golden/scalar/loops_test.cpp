// Looped collective einsums in the f32 regime: the engine and the scalar model agree, and a run
// whose loops go another way is found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "engine/run/inference.h"
#include "golden/scalar/judge.h"
#include "golden/verify.h"

namespace shardproof {
namespace {

/// A ring of five over x, of three over z, of fifteen over both.
Case looped(const std::string& strategy, Loop loop) {
  Case c = parse_case(
      "torus=5x1x3 model=palm-tiny,layers=1,E=60,F=120,H=30,Q=4,V=60 block=serial regime=f32 "
      "batch=15 prompt=3 chunk=2 gen=3 seed=5 prefill=" +
      strategy);
  c.numerics.loop = loop;
  return c;
}

constexpr Loop kLoops[] = {Loop::one_way, Loop::both_full, Loop::both_half};

/// The verdict of the judge of the right programs on a run of programs with other loops.
Verdict ran_as(const Case& c, const std::function<bool(Program&)>& change) {
  OracleMemo memo;
  const auto known = memo.get(c);
  const RunPlan right = make_plan(c);
  RunPlan wrong = right;
  EXPECT_TRUE(change(wrong.prefill.layer)) << "nothing to change";
  Findings findings;
  ScalarJudge judge(right, known->weights, known->prompt, known->answer, findings);
  Threads threads(2);
  const IntTensor generated =
      run_inference(wrong, known->weights, known->prompt, threads, &judge, {}, {}, &findings);
  if (!findings.ended()) judge.observe_generated(generated);
  return judge.finish().verdict;
}

/// Whether another order of its ring is another sum.
bool decides(const Program& program, const Op& op) {
  if (op_row(op.kind).reduces) return op.loop != Loop::none;
  for (const std::size_t arg : op.looped)
    if (const Ring ring = program.rings(op).at(arg / 2);
        EinsumSpec::contracted(op.spec.terms.at(arg / 2)).find(ring.dim) != std::string::npos)
      return true;
  return false;
}

TEST(LoopedRuns, AreEqualToTheScalarModel) {
  OracleMemo memo;
  for (const char* strategy : {"ws1d:heads", "ws2d:heads", "ws2d:bfirst-x", "ws2d:norm-first",
                               "wg-x:natural", "wg-xyz:batch", "fsdp"})
    for (Loop loop : kLoops) {
      const Case c = looped(strategy, loop);
      const Judgement j = verify_case(c, memo);
      EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << " " << j.explanation();
    }
}

// Each loop that decides a sum, in turn another one, or none: by name of its value.
TEST(LoopedRuns, OfAnotherOrderAreDifferent) {
  std::set<std::string> values;
  for (const char* strategy : {"ws2d:heads", "wg-x:natural"})
    for (Loop loop : kLoops) {
      const Case c = looped(strategy, loop);
      const Program layer = make_plan(c).prefill.layer;
      for (std::size_t i = 0; i < layer.ops.size(); ++i) {
        const Op& op = layer.ops[i];
        if (!decides(layer, op)) continue;
        values.insert(op.results[0].role.name);
        for (Loop other : {Loop::none, Loop::one_way, Loop::both_full, Loop::both_half}) {
          if (other == loop) continue;
          // Of three chips (a+b)+c is (b+a)+c: both halves of a sum go the same way.
          if (op_row(op.kind).reduces && c.torus.size(op.axes) == 3 && other != Loop::none &&
              other != Loop::both_full && loop != Loop::both_full)
            continue;
          const Verdict v = ran_as(c, [&](Program& wrong) {
            if (op_row(op.kind).reduces) {
              wrong.ops[i].loop = other;
            } else if (other == Loop::none) {
              wrong.ops[i].looped.clear();
            } else {
              for (Op& gather : wrong.ops)
                if (gather.kind == OpKind::all_gather && gather.loop != Loop::none &&
                    gather.results[0].name == op.args.at(op.looped.at(0)))
                  gather.loop = other;
            }
            return true;
          });
          EXPECT_EQ(v, Verdict::different) << layer.name << " " << op.results[0].name << " = "
                                           << op.to_string() << " as " << to_string(other);
        }
      }
    }
  EXPECT_EQ(values, (std::set<std::string>{"q", "k", "v", "gate", "up", "attn_out", "ffn_out"}));
}

}  // namespace
}  // namespace shardproof
