// acc=bf16, wire=bf16 and cache=bf16 under the judge of the f32 regime: recomputed by the rules of
// docs/spec.md section 1.2 every value is equal, and each rounding that is left out, or made where
// none is, is found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/collectives/transfer.h"
#include "engine/ops/einsum.h"
#include "engine/run/plan.h"
#include "tests/golden/scalar/faulty.h"
#include "weights/base/bf16.h"

namespace shardproof {
namespace {

using namespace faulty;

constexpr NumberFormat f32 = NumberFormat::f32, bf16 = NumberFormat::bf16;

Fault of(const std::string& role, const Fault& fault) {
  return [=](const Op& op, const Args& args, Results& results) {
    return op.results[0].role.to_string() == role && fault(op, args, results);
  };
}

/// Rounds what an op of this kind yields.
Fault rounding(OpKind kind, std::size_t result = 0) {
  return [=](const Op& op, const Args&, Results& results) {
    if (op.kind != kind || !results.contains(result)) return false;
    for (const auto& chip : numbers_of(results.at(result)))
      std::transform(chip.begin(), chip.end(), chip.begin(), round_to_bf16);
    return true;
  };
}

template <bool kEach, bool kLast>
float chained(std::int64_t K, const Factors& a, const Factors& b) {
  float c = 0.0F;
  for (std::int64_t k = 0; k < K; ++k) {
    c = std::fma(a(k), b(k), c);
    if (kEach || (kLast && k + 1 == K)) c = round_to_bf16(c);
  }
  return c;
}
float rounded_product(std::int64_t K, const Factors& a, const Factors& b) {
  float c = 0.0F;
  for (std::int64_t k = 0; k < K; ++k) c = round_to_bf16(round_to_bf16(a(k) * b(k)) + c);
  return c;
}

TEST(ScalarAcc, EveryFmaIsRounded) {
  const Case c = rounding_case(Schedule::group, bf16, f32);
  expect_equal(c, product(chained<true, false>));
  expect_caught(c, product(chained<false, false>));
  expect_caught(c, product(chained<false, true>));
  expect_caught(c, product(rounded_product));
  expect_caught(f32_case(Schedule::group), product(chained<true, false>));
}

TEST(ScalarAcc, OfStatisticsAttentionAndLogitsNothingIsRounded) {
  const Case c = rounding_case(Schedule::group, bf16, bf16);
  expect_caught(c, of("stat ss", rounding(OpKind::einsum)));
  expect_caught(c, of("raw logits", rounding(OpKind::einsum)));
  for (std::size_t result = 0; result < 5; ++result)  // score, max, exp, denom, attn
    expect_caught(c, rounding(OpKind::attend, result));
  for (const char* role : {"stat ss", "stat final_ss", "stat last final_ss", "raw logits"})
    for (OpKind kind : {OpKind::reduce_scatter, OpKind::all_reduce}) {
      int planted = 0;
      const Judgement j = judged(c, of(role, rounding(kind)), &planted);
      EXPECT_EQ(j.verdict, planted > 0 ? Verdict::different : Verdict::equal) << role;
    }
}

/// A case whose f32 sums are all there are: of layernorms, in either block.
Case every_sum(const char* block, const std::string& numerics) {
  return parse_case(fmt::format(
      "torus=5x1x3 model=palm-tiny,layers=1,E=60,F=120,H=15,Q=4,V=60,norm=layernorm block={} "
      "prefill=ws2d:heads regime=f32 prompt=3 chunk=2 gen=2 seed=5 {}",
      block, numerics));
}

/// The rings of a contraction of the case.
std::vector<Ring> rings_of(const Case& c, const Op& op) {
  if (op.looped.empty()) return {};
  const RunPlan plan = make_plan(c);
  for (const Program* layer : {&plan.prefill.layer, &plan.decode.layer})
    if (std::find(layer->ops.begin(), layer->ops.end(), op) != layer->ops.end())
      return layer->rings(op);
  ADD_FAILURE() << op.to_string() << " is of no layer";
  return {};
}

/// The engine's own op with the other acc, or the other wire, for one named value.
Fault flipped(const Case& c, const std::string& name, OpKind kind, bool acc) {
  return [=, numerics = c.numerics](const Op& op, const Args& args, Results& results) {
    const Role& role = op.results[0].role;
    const Torus& torus = args[0].torus();
    if (role.name != name || op.kind != kind) return false;
    if (kind != OpKind::einsum && torus.size(op.axes) == 1) return false;
    Summation how{numerics.schedule, acc_type(role, numerics), partial_wire_type(role, numerics),
                  op.loop};
    NumberFormat& one = acc ? how.acc : how.wire;
    one = one == bf16 ? f32 : bf16;
    Sharded& to = results.at(0);
    if (kind == OpKind::einsum) {
      std::vector<std::pair<SharedValue, SharedValue>> terms;
      for (std::size_t i = 0; i < args.size(); i += 2)
        terms.emplace_back(std::make_shared<Sharded>(args[i]),
                           std::make_shared<Sharded>(args[i + 1]));
      to = einsum(op.spec, terms, to.layout(), to.shape(), calling_thread(), Regime::f32, how.acc,
                  rings_of(c, op));
    } else {
      const Shape& local = args[0].local();
      if (kind == OpKind::reduce_scatter) how.dim = *args[0].layout().find(op.dim);
      const Moves moves = kind == OpKind::all_reduce
                              ? all_reduce_moves(torus, local, op.axes)
                              : reduce_scatter_moves(torus, local, how.dim, op.axes);
      to = reduce(args[0], moves, to.layout(), to.shape(), calling_thread(), how);
    }
    return true;
  };
}

/// The names of the values that ops of this kind yield.
std::set<std::string> names_of(const Case& c, OpKind kind) {
  const PhasePrograms programs = make_plan(c).prefill;
  std::set<std::string> names;
  for (const Program* program : {&programs.embed, &programs.layer, &programs.head})
    for (const Op& op : program->ops)
      if (op.kind == kind && (kind == OpKind::einsum || c.torus.size(op.axes) > 1))
        names.insert(op.results[0].role.name);
  return names;
}

// Of every named value that is a sum: that acc and wire round it, or that they do not, of either
// schedule both ways and of every loop.
TEST(ScalarRounding, OfEveryNamedValueIsJudged) {
  for (const char* way :
       {"", "schedule=biring", "loop=one-way", "loop=both-full", "loop=both-half"}) {
    std::set<std::string> chains, sums;
    for (const char* block : {"parallel", "serial"})
      for (const bool acc : {true, false}) {
        const Case c = every_sum(block, fmt::format("{} {}", way, acc ? "acc=bf16" : "wire=bf16"));
        for (OpKind kind : {OpKind::einsum, OpKind::reduce_scatter, OpKind::all_reduce}) {
          if (kind == OpKind::einsum && !acc) continue;  // nothing travels
          for (const std::string& name : names_of(c, kind)) {
            SCOPED_TRACE(fmt::format("{} {} of {}", print_case(c), to_string(kind), name));
            expect_caught(c, flipped(c, name, kind, acc));
            (kind == OpKind::einsum ? chains : sums).insert(name);
          }
        }
      }
    EXPECT_EQ(chains, (std::set<std::string>{"q", "k", "v", "gate", "up", "block_out", "attn_out",
                                             "ffn_out", "sum", "ss", "sum2", "ss2", "final_sum",
                                             "final_ss", "logits"}));
    chains.insert("embed");
    EXPECT_EQ(sums, chains);
  }
}

/// Of partial sums that move before they are reduced.
Case moving_case(NumberFormat wire) {
  Case c = parse_case(
      "torus=2x3x1 model=palm-tiny,layers=1,E=24,F=24,H=12,K=3,Q=4,V=24 prefill=ws2d:pre-y "
      "regime=f32 prompt=2 gen=2");
  c.numerics.wire = wire;
  return c;
}

TEST(ScalarWire, PartialsThatMoveAreRoundedAllOfThem) {
  const auto partial_move = [](auto&& change) -> Fault {
    return [=](const Op& op, const Args& args, Results& results) {
      if (op.kind != OpKind::all_to_all || !args[0].layout().is_partial()) return false;
      const auto moves =
          all_to_all_moves(args[0].torus(), args[0].local(), *args[0].layout().find(op.dim),
                           *args[0].layout().find(op.to), op.axes, op.as);
      const Sharded right =
          transfer(args[0], moves, results.at(0).layout(), results.at(0).shape(), calling_thread());
      const auto chips = numbers_of(results.at(0));
      for (std::size_t c = 0; c < chips.size(); ++c)
        for (std::size_t i = 0; i < chips[c].size(); ++i)
          chips[c][i] = change(right.f32()[c][i], i);
      return true;
    };
  };
  expect_equal(moving_case(bf16),
               partial_move([](float v, std::size_t) { return round_to_bf16(v); }));
  expect_equal(moving_case(f32), partial_move([](float v, std::size_t) { return v; }));
  expect_caught(moving_case(bf16), partial_move([](float v, std::size_t) { return v; }));
  expect_caught(moving_case(bf16),
                partial_move([](float v, std::size_t i) { return i == 0 ? v : round_to_bf16(v); }));
  expect_caught(moving_case(f32),
                partial_move([](float v, std::size_t) { return round_to_bf16(v); }));
}

/// Puts into a chip's cache what was appended at `slot_of` its rows, as `change` makes it of k_rot
/// or v.
template <class SlotOf>
void append_as(float (*change)(float), const Sharded& rows, int chip, Sharded& cache,
               SlotOf&& slot_of) {
  const Shape& local = rows.local();
  const std::int64_t n = local[2] * local[3], M = cache.local()[1];
  const auto c = static_cast<std::size_t>(chip);
  const std::span<float> to = numbers_of(cache)[c];
  for (std::int64_t row = 0; row < local[0] * local[1]; ++row)
    for (std::int64_t i = 0; i < n; ++i)
      to[static_cast<std::size_t>((row / local[1] * M + slot_of(row)) * n + i)] =
          change(rows.f32()[c][static_cast<std::size_t>(row * n + i)]);
}
float as_it_is(float v) { return v; }

/// Shows one chip's cache, or every chip's, with what this pass appended as `change` makes it.
Fault appended(float (*change)(float), const std::string& name, int only = -1) {
  return [=](const Op& op, const Args& args, Results& results) {
    if (op.kind != OpKind::append || op.results[0].role.name != name) return false;
    for (int chip = 0; chip < args[0].torus().chips(); ++chip)
      if (only < 0 || chip == only)
        append_as(change, args[1], chip, results.at(0), [&](std::int64_t row) {
          return args[2].i32()[static_cast<std::size_t>(chip)][static_cast<std::size_t>(row)];
        });
    return true;
  };
}

/// What caches are kept as with act=f32, the rule for it and the fault.
struct Kept {
  std::optional<NumberFormat> cache;
  float (*right)(float);
  float (*wrong)(float);
};
constexpr Kept kKept[] = {{NumberFormat::bf16, round_to_bf16, as_it_is},
                          {NumberFormat::f32, as_it_is, round_to_bf16},
                          {std::nullopt, as_it_is, round_to_bf16}};

TEST(ScalarCache, WhatIsAppendedIsRoundedAsCacheSays) {
  for (const char* name : {"k_cache", "v_cache"})
    for (const auto& [cache, right, wrong] : kKept) {
      Case c = f32_case(Schedule::group);
      ASSERT_EQ(c.numerics.act, NumberFormat::f32);
      c.model.cache = cache;
      expect_equal(c, appended(right, name));
      expect_caught(c, appended(wrong, name));
      for (int chip = 0; chip < c.torus.chips(); ++chip)
        expect_caught(c, appended(wrong, name, chip));
    }
}

/// A run of the exact regime in which one chip's cache, from then on, is what `change` makes of
/// k_rot or v; all rows have the same positions.
Judgement ran_with(float (*change)(float), const Case& c, const std::string& name, int chip,
                   OracleMemo& memo) {
  std::map<std::string, Sharded> seen;
  int planted = 0;
  VerifyOptions options;
  options.faults.result = [&](const Scope& scope, const Program& program, const Op& op,
                              const ValueDecl& result, Sharded& value) {
    seen.insert_or_assign(scope.step(program, result.name), value);
    if (op.kind != OpKind::append || result.role.name != name) return;
    const Sharded& rows = seen.at(scope.step(program, op.args[1]));
    const std::int64_t L = rows.local()[1], before = value.local()[1] - L;
    append_as(change, rows, chip, value, [&](std::int64_t row) { return before + row % L; });
    ++planted;
  };
  const Judgement j = verify_case(c, memo, options);
  EXPECT_GT(planted, 0) << "the fault had no place";
  return j;
}

/// The same in the exact regime: the oracle rounds by its own code.
TEST(ExactCache, WhatIsAppendedIsRoundedAsCacheSays) {
  OracleMemo memo;
  for (const char* name : {"k_cache", "v_cache"})
    for (const auto& [cache, right, wrong] : kKept) {
      Case c =
          parse_case("torus=1x2x3 model=palm-tiny,layers=1,E=24,F=24,H=12,Q=4,V=24 prompt=3 gen=3");
      ASSERT_EQ(c.numerics.act, NumberFormat::f32);
      c.model.cache = cache;
      for (int chip = 0; chip < c.torus.chips(); ++chip) {
        SCOPED_TRACE(fmt::format("{} of {}, chip {}", name, print_case(c), chip));
        EXPECT_EQ(ran_with(right, c, name, chip, memo).verdict, Verdict::equal);
        const Judgement j = ran_with(wrong, c, name, chip, memo);
        EXPECT_EQ(j.verdict, Verdict::different);
        ASSERT_TRUE(j.difference());
        EXPECT_NE(j.difference()->checkpoint.find(name), std::string::npos);
      }
    }
}

}  // namespace
}  // namespace shardproof
