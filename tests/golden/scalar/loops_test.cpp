// Looped collective einsums in the f32 regime: the engine and the scalar model agree, and a run
// whose loops go another way is found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/golden/scalar/faulty.h"
#include "tests/sanitized.h"

namespace shardproof {
namespace {

using namespace faulty;

/// Chunks with even numbers of indices, of F 8 and of H 2; and odd ones, of 5 and of 3.
constexpr const char* kEven = "E=60,F=120,H=30";
constexpr const char* kOdd = "E=75,F=75,H=45";

/// A ring of five over x, of three over z, of fifteen over both.
Case looped(const std::string& strategy, Loop loop, const char* sizes, const char* block,
            const char* numerics = "") {
  Case c = parse_case(
      fmt::format("torus=5x1x3 model=palm-tiny,layers=1,{},Q=4,V=60 block={} regime=f32 batch=15 "
                  "prompt=3 chunk=2 gen=3 seed=5 prefill={} {}",
                  sizes, block, strategy, numerics));
  c.numerics.loop = loop;
  return c;
}

constexpr Loop kAllLoops[] = {Loop::one_way, Loop::both_full, Loop::both_half};
constexpr Loop kAll[] = {Loop::none, Loop::one_way, Loop::both_full, Loop::both_half};

/// The verdict of the judge of the right programs on a run of others.
Verdict ran_as(const Case& c, const RunPlan& right, const RunPlan& wrong) {
  OracleMemo memo;
  const auto known = memo.get(c);
  Findings findings;
  ScalarJudge judge(right, known->weights, known->prompt, known->answer, findings);
  Threads threads(2);
  const IntTensor generated =
      run_inference(wrong, known->weights, known->prompt, threads, &judge, {}, {}, &findings);
  if (!findings.ended()) judge.observe_generated(generated);
  return judge.finish().verdict;
}

/// The all_gather that yields a value.
Op& gather_of(Program& program, const std::string& value) {
  for (Op& op : program.ops)
    if (op.kind == OpKind::all_gather && op.results[0].name == value) return op;
  throw std::logic_error(value + " is not gathered");
}

/// The looped operands that are contracted along their ring: another order is another sum.
std::vector<std::size_t> deciding(const Program& program, const Op& op) {
  std::vector<std::size_t> args;
  for (const std::size_t arg : op.looped)
    if (const Ring ring = program.rings(op).at(arg / 2);
        EinsumSpec::contracted(op.spec.terms.at(arg / 2)).find(ring.dim) != std::string::npos)
      args.push_back(arg);
  return args;
}

TEST(LoopedRuns, AreEqualToTheScalarModel) {
  OracleMemo memo;
  OneInN chosen(5, "cases");
  for (const char* strategy : {"ws1d:heads", "ws2d:heads", "ws2d:bfirst-x", "ws2d:norm-first",
                               "wg-x:natural", "wg-xyz:batch", "fsdp"})
    for (const char* block : {"serial", "parallel"})
      for (Loop loop : kAllLoops)
        for (const Case& c :
             {looped(strategy, loop, kEven, block), looped(strategy, loop, kOdd, block),
              looped(strategy, loop, kOdd, block, "acc=bf16"),
              looped(strategy, loop, kOdd, block, "wire=bf16")}) {
          if (!chosen()) continue;
          const Judgement j = verify_case(c, memo);
          EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << " " << j.explanation();
        }
}

// Each loop that decides a sum, in turn another one, or none: by name of its value, and of the
// operand that is gathered.
TEST(LoopedRuns, OfAnotherOrderAreDifferent) {
  std::set<std::string> values;
  OneInN chosen(5, "cases");
  for (const char* strategy : {"ws2d:heads", "wg-x:natural"})
    for (const char* block : {"serial", "parallel"})
      for (const char* sizes : {kEven, kOdd})
        for (Loop loop : kAllLoops) {
          if (!chosen()) continue;
          const Case c = looped(strategy, loop, sizes, block);
          const RunPlan right = make_plan(c);
          const Program& layer = right.prefill.layer;
          for (std::size_t i = 0; i < layer.ops.size(); ++i) {
            const Op& op = layer.ops[i];
            const std::string name = op.results[0].role.name;
            for (const Loop other : kAll) {
              if (other == loop) continue;
              const auto expect_found = [&](const std::string& what, const RunPlan& wrong) {
                values.insert(what);
                EXPECT_EQ(ran_as(c, right, wrong), Verdict::different)
                    << print_case(c) << ": " << what << ", " << op.to_string() << " as "
                    << to_string(other);
              };
              if (op_row(op.kind).reduces && op.loop != Loop::none) {
                // Of three chips (a+b)+c is (b+a)+c: both halves of a sum go the same way.
                if (c.torus.size(op.axes) == 3 && other != Loop::none && other != Loop::both_full &&
                    loop != Loop::both_full)
                  continue;
                RunPlan wrong = right;
                wrong.prefill.layer.ops[i].loop = other;
                expect_found(name, wrong);
              }
              for (const std::size_t arg : deciding(layer, op)) {
                RunPlan wrong = right;
                gather_of(wrong.prefill.layer, op.args[arg]).loop = other;
                expect_found(name + " of " + layer.declared(op.args[arg]).role.name, wrong);
              }
            }
          }
        }
  const std::set<std::string> every{"q",
                                    "gate",
                                    "up",
                                    "attn_out",
                                    "ffn_out",
                                    "block_out",
                                    "q of wq",
                                    "k of wk",
                                    "v of wv",
                                    "gate of w_gate",
                                    "up of w_up",
                                    "attn_out of attn",
                                    "ffn_out of hidden",
                                    "block_out of attn",
                                    "block_out of hidden"};
  if (chosen.all())
    EXPECT_EQ(values, every);
  else
    EXPECT_TRUE(!values.empty() &&
                std::includes(every.begin(), every.end(), values.begin(), values.end()));
}

// The two rings of a parallel block's block_out: of both terms H and F are gathered over x.
TEST(LoopedRuns, OfABlockOutHaveARingForEachTerm) {
  const Case c = looped("ws2d:heads", Loop::one_way, kOdd, "parallel");
  const auto with = [&](Loop attn, Loop hidden) {
    RunPlan plan = make_plan(c);
    for (Program* layer : {&plan.prefill.layer, &plan.decode.layer}) {
      const auto out = std::find_if(layer->ops.begin(), layer->ops.end(), [](const Op& op) {
        return op.kind == OpKind::einsum && op.results[0].role.name == "block_out";
      });
      EXPECT_EQ(out->looped, (std::vector<std::size_t>{0, 2}));
      gather_of(*layer, out->args[0]).loop = attn;
      gather_of(*layer, out->args[2]).loop = hidden;
    }
    return plan;
  };
  OneInN chosen(3, "pairs of loops");
  for (const Loop attn : kAll)
    for (const Loop hidden : kAll) {
      if (!chosen()) continue;
      const RunPlan right = with(attn, hidden);
      EXPECT_EQ(ran_as(c, right, right), Verdict::equal)
          << to_string(attn) << " " << to_string(hidden);
      for (const Loop other : kAll) {
        if (other != attn) {
          EXPECT_EQ(ran_as(c, right, with(other, hidden)), Verdict::different)
              << to_string(attn) << " as " << to_string(other) << ", " << to_string(hidden);
        }
        if (other != hidden) {
          EXPECT_EQ(ran_as(c, right, with(attn, other)), Verdict::different)
              << to_string(attn) << ", " << to_string(hidden) << " as " << to_string(other);
        }
      }
    }
}

/// In which order chip j of five takes the indices of a dim of both-half, whose chunks have five
/// and whose first halves `half`.
std::vector<std::int64_t> both_half(std::int64_t j, std::int64_t half) {
  constexpr std::int64_t K = 5, n = 5;
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < n; ++i) order.push_back(j * n + i);
  for (std::int64_t round = 1; round < K; ++round) {
    for (std::int64_t i = 0; i < half; ++i) order.push_back((j + K - round) % K * n + i);
    for (std::int64_t i = half; i < n; ++i) order.push_back((j + round) % K * n + i);
  }
  return order;
}

/// Recomputes ffn_out of a serial block, S(act, w_out), with first halves of that size.
Fault gathered_in_halves(std::int64_t half) {
  return [half](const Op& op, const Args& args, Results& results) {
    if (op.kind != OpKind::einsum || op.results[0].role.name != "ffn_out") return false;
    EXPECT_EQ(op.spec.to_string(), "BLF,FE->BLE");
    const std::int64_t F = args[1].local()[0], E = args[1].local()[1];
    const auto chips = numbers_of(results.at(0));
    for (std::size_t chip = 0; chip < chips.size(); ++chip) {
      const int j = args[0].torus().block(static_cast<int>(chip), Axes::parse("x"));
      const std::vector<std::int64_t> order = both_half(j, half);
      EXPECT_EQ(std::ssize(order), F);
      for (std::size_t i = 0; i < chips[chip].size(); ++i) {
        const auto row = static_cast<std::int64_t>(i) / E,
                   column = static_cast<std::int64_t>(i) % E;
        float c = 0.0F;
        for (const std::int64_t f : order)
          c = std::fma(args[0].f32()[chip][static_cast<std::size_t>(row * F + f)],
                       args[1].f32()[chip][static_cast<std::size_t>(f * E + column)], c);
        chips[chip][i] = c;
      }
    }
    return true;
  };
}

/// Recomputes the looped reduce_scatters over five chips; the second half of a chunk begins at
/// index ⌈n/2⌉, or with `smaller` at ⌊n/2⌋.
Fault scattered_in_halves(bool smaller) {
  const Fault fault = reduction_by(
      [smaller](const Summed& s) {
        const std::size_t K = s.terms.size();
        const bool second = smaller ? s.place >= s.places / 2 : s.second_half();
        float total = s.terms[(s.chunk + (second ? K - 1 : 1)) % K];
        for (std::size_t i = 2; i <= K; ++i)
          total += s.terms[(s.chunk + (second ? K - 1 : 1) * i) % K];
        return total;
      },
      OpKind::reduce_scatter, 5);
  return [fault](const Op& op, const Args& args, Results& results) {
    return op.loop == Loop::both_half && fault(op, args, results);
  };
}

TEST(LoopedRuns, TheFirstHalfOfAnOddChunkIsTheLarger) {
  const Case c = looped("ws2d:heads", Loop::both_half, kOdd, "serial");
  expect_equal(c, gathered_in_halves(3));
  expect_caught(c, gathered_in_halves(2));
  expect_equal(c, scattered_in_halves(false));
  expect_caught(c, scattered_in_halves(true));
}

}  // namespace
}  // namespace shardproof
