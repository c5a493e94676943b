// What is the same formula is found equal: other tables, chunks, dtypes and loops; rescalings and
// scales that move; heads and pairs that change places; garbage in padding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "tests/engine/strategy_sample.h"
#include "tests/golden/layer_text.h"
#include "tests/golden/verify/field/mutant.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

TEST(FieldAlarms, NoneOfTablesChunksDtypesAndLoops) {
  OracleMemo memo;
  int tried = 0;
  for (const Strategy& strategy : all_strategies())
    for (const char* numerics :
         {"", "act=bf16", "weights=int8", "weights=bf16 act=bf16 loop=one-way", "loop=both-full"}) {
      Case c =
          parse_case(fmt::format("torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=12,K=3,Q=4,"
                                 "V=36,positions=16 batch=6 prompt=4 gen=2 seed=3 regime=field "
                                 "{}",
                                 numerics));
      c = fitted(c, strategy);
      if (decodes(strategy)) c.prefill = c.decode = strategy;
      for (const std::int64_t chunk : {c.prompt, std::int64_t{2}}) {
        if (chunk != c.prompt && !decodes(strategy)) continue;
        c.chunk = chunk;
        const Judgement j = verify_case(c, memo);
        EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << ": " << j.explanation();
        ++tried;
      }
    }
  std::cout << tried << " runs that are one formula, no alarm\n";
  EXPECT_GE(tried, 200);
}

using Change = std::function<void(const std::string& name, Sharded& placed)>;

/// Element i of a chip becomes what element from(index) was, index by dims of the shard.
template <class T>
void rearrange(std::span<T> to, const Shape& local, const std::function<Shape(Shape)>& from) {
  const std::vector<T> before(to.begin(), to.end());
  Shape at(local.size(), 0);
  for (T& element : to) {
    const Shape source = from(at);
    std::int64_t index = 0;
    for (std::size_t d = 0; d < local.size(); ++d) index = index * local[d] + source[d];
    element = before[static_cast<std::size_t>(index)];
    for (std::size_t d = local.size(); d-- > 0 && ++at[d] == local[d];) at[d] = 0;
  }
}

void rearrange(Sharded& placed, const std::function<Shape(Shape)>& from) {
  for (int chip = 0; chip < placed.torus().chips(); ++chip)
    if (placed.holds_field())
      rearrange(placed.field_of(chip), placed.local(), from);
    else
      rearrange(placed.f32_of(chip), placed.local(), from);
}

void reverse_dim(Sharded& placed, char dim) {
  const std::size_t d = *placed.layout().find(dim);
  rearrange(placed, [d, n = placed.local()[d]](Shape at) {
    at[d] = n - 1 - at[d];
    return at;
  });
}

void reverse_heads(const std::string& name, Sharded& placed) {
  if (name == "layer0.wq" || name == "layer0.wo") reverse_dim(placed, 'H');
  if (name == "layer0.wk" || name == "layer0.wv") reverse_dim(placed, 'K');
}

/// Pairs of channels j and j + J of a rotation, J = 2.
void swap_pairs(const std::string& name, Sharded& placed) {
  if (name == "rope_cos" || name == "rope_sin") reverse_dim(placed, 'J');
  if (name != "layer0.wq" && name != "layer0.wk") return;
  rearrange(placed, [](Shape at) {
    at.back() ^= 1;
    return at;
  });
}

/// The bytes of all chips.
template <class T>
std::string bits_of(const ChipArrays<T>& chips) {
  std::string bits;
  for (const Buffer<T>& chip : chips)
    bits.append(reinterpret_cast<const char*>(chip.data()), chip.size() * sizeof(T));
  return bits;
}

/// Values and W_O share a factor, and so do gains and what is multiplied by a norm.
void move_factors(const std::string& name, Sharded& placed) {
  const Field& field = *placed.field().field;
  const FieldElement three = field.integer(3), five = field.integer(5);
  FieldElement by = field.integer(1);
  if (name == "layer0.norm") by = five;
  for (const char* matrix : {"layer0.wq", "layer0.wk", "layer0.wv", "layer0.w_gate", "layer0.w_up"})
    if (name == matrix) by = field.inverse(five);
  if (name == "layer0.wv") by = field.multiply(by, three);
  if (name == "layer0.wo") by = field.inverse(three);
  for (int chip = 0; chip < placed.torus().chips(); ++chip)
    for (FieldElement& v : placed.field_of(chip)) v = field.multiply(v, by);
}

// In exact, too, bit for bit, where nothing is computed anew.
TEST(FieldAlarms, NoneInOutputsOfWeightsThatAreTheSameModel) {
  OracleMemo memo;
  int tried = 0;
  struct Same {
    std::string what;
    Change change;
    Regime regime;
  };
  for (const auto& [what, change, regime] :
       std::vector<Same>{{"heads reversed", reverse_heads, Regime::field},
                         {"heads reversed", reverse_heads, Regime::exact},
                         {"pairs of RoPE swapped", swap_pairs, Regime::field},
                         {"pairs of RoPE swapped", swap_pairs, Regime::exact},
                         {"factors moved", move_factors, Regime::field}})
    for (const char* line :
         {"torus=2x1x1 prefill=ws2d:heads K=12", "torus=1x2x2 prefill=ws2d:batch",
          "torus=1x1x1 prefill=wg-xyz:batch K=12", "torus=2x1x1 prefill=ws1d:heads"}) {
      SCOPED_TRACE(fmt::format("{}: {}, {}", what, line, to_string(regime)));
      Case c = small_case(line);
      c.numerics.regime = regime;
      Mutant same;
      std::set<std::string> changed;
      same.hooks = [&, by = change](const Case&, const Shown&, FaultHooks& hooks) {
        hooks.weight = [&, by](const std::string& name, Sharded& placed) {
          const auto bits = [&] {
            return placed.holds_field() ? bits_of(placed.field().values) : bits_of(placed.f32());
          };
          const auto before = bits();
          by(name, placed);
          if (before != bits()) changed.insert(name);
        };
      };
      const Outcome right = run_with(nullptr, c, memo);
      const Outcome other = run_with(&same, c, memo);
      EXPECT_EQ(right.judgement.verdict, Verdict::equal);
      EXPECT_GE(changed.size(), 2U);
      EXPECT_EQ(other.outputs, right.outputs);
      ++tried;
    }
  std::cout << tried << " models of other weights, no alarm in logits and tokens\n";
}

/// The gate's scale of int8, applied to partial sums.
Mutant scale_before_the_reduction() {
  Mutant moved;
  moved.line = "torus=2x1x1 prefill=ws2d:heads weights=int8";
  moved.refused = {{"input w_gate_scale : F_zyx", "input w_gate_scale : F_zy"},
                   {"hr : BLF_zyx = reduce_scatter(h, F, x) is raw gate\n", ""},
                   {"hr_s : BLF_zyx = scale(hr, w_gate_scale) is gate",
                    "h_s : BLF_zy partialsum-x = scale(h, w_gate_scale) is gate\n"
                    "hr_s : BLF_zyx = reduce_scatter(h_s, F, x) is gate"}};
  moved.planted = {
      {"input w_gate_scale : F_zyx", "input w_gate_scale : F_zy"},
      {"einsum(BLE,EF->BLF; xn, w_gate) is raw gate", "einsum(BLE,EF->BLF; xn, w_gate) is gate"},
      {"hr : BLF_zyx = reduce_scatter(h, F, x) is raw gate\n", ""},
      {"hr_s : BLF_zyx = scale(hr, w_gate_scale) is gate",
       "hr_s : BLF_zyx = reduce_scatter(h, F, x) is gate"}};
  moved.hooks = [](const Case&, const Shown& shown, FaultHooks& hooks) {
    hooks.result = [&shown](const Scope&, const Program& program, const Op&,
                            const ValueDecl& declared, Sharded& value) {
      if (program.name != kLayerProgram || declared.name != "h") return;
      const Sharded& scale = shown.at("w_gate_scale");
      const auto width = static_cast<std::size_t>(scale.local()[0]);
      for (int chip = 0; chip < value.torus().chips(); ++chip) {
        const auto c = static_cast<std::size_t>(chip);
        if (value.holds_field()) {
          const std::span<FieldElement> all = value.field_of(chip);
          for (std::size_t i = 0; i < all.size(); ++i)
            all[i] = value.field().field->multiply(all[i], scale.field().values[c][i % width]);
        } else {
          const std::span<double> all = value.partial_values_of(chip);
          for (std::size_t i = 0; i < all.size(); ++i)
            all[i] *= static_cast<double>(scale.f32()[c][i % width]);
        }
      }
    };
  };
  return moved;
}

TEST(FieldAlarms, NoneOfAScaleBeforeTheReduction) {
  OracleMemo memo;
  const Mutant moved = scale_before_the_reduction();
  Case c = small_case(moved.line);
  // No program may say so, and bits differ: a product is rounded where a sum was.
  RunPlan plan = make_plan(c);
  edit_layers(plan, moved.refused);
  Findings findings;
  EXPECT_FALSE(check(plan, findings));
  EXPECT_EQ(run_with(nullptr, c, memo).judgement.verdict, Verdict::equal);
  EXPECT_EQ(run_with(&moved, c, memo).judgement.verdict, Verdict::different);
  c.numerics.regime = Regime::field;
  const Outcome right = run_with(nullptr, c, memo), same = run_with(&moved, c, memo);
  EXPECT_TRUE(same.judgement.findings.empty()) << same.judgement.explanation();
  EXPECT_EQ(same.outputs, right.outputs);
}

TEST(FieldAlarms, NoneOfGarbageInPadding) {
  OracleMemo memo;
  const std::vector<std::int64_t> tokens{3, 1, 2, 3, 1, 2, 3, 3, 1, 1, 2, 2};
  for (const auto& [line, regime] : {std::pair{"torus=2x1x1 prefill=ws2d:heads", Regime::field},
                                     {"torus=1x2x1 prefill=wg-xyz:batch", Regime::field},
                                     {"torus=2x1x1 prefill=ws2d:heads", Regime::exact},
                                     {"torus=1x2x1 prefill=wg-xyz:batch", Regime::exact}}) {
    Case c = small_case(line);
    c.numerics.regime = regime;
    c.prompt = c.chunk = 3;
    RunPlan plan = make_plan(c);
    std::vector<PassPlan> passes;
    for (std::int64_t i = 0; i < plan.passes.size(); ++i) {
      PassPlan pass = plan.passes.at(i);
      pass.rows.clear();
      for (const std::int64_t n : tokens)
        pass.rows.push_back(i == 0 ? PassRows{1, 0, n} : PassRows{1, n + i - 1, 1});
      passes.push_back(pass);
    }
    plan.passes = Passes(passes);
    const TypedPlan typed = make_typed_plan(plan);
    ASSERT_TRUE(typed.types);
    int changed = 0;
    VerifyOptions options;
    options.faults.result = [&](const Scope& scope, const Program& program, const Op&,
                                const ValueDecl& declared, Sharded& value) {
      if (program.name != "embed" || declared.role.to_string() != "embed" ||
          !scope.pass.starts_with("prefill"))
        return;
      const std::int64_t rows = value.local()[0], L = value.local()[1], E = value.local()[2];
      for (int chip = 0; chip < value.torus().chips(); ++chip) {
        const std::int64_t first = value.torus().block(chip, value.layout().axes('B')) * rows;
        for (std::int64_t b = 0; b < rows; ++b)
          for (std::int64_t l = tokens[static_cast<std::size_t>(first + b)]; l < L; ++l)
            for (std::int64_t e = 0; e < E; ++e, ++changed) {
              const auto i = static_cast<std::size_t>((b * L + l) * E + e);
              if (value.holds_field())
                value.field_of(chip)[i] = {{1, 2, 3}};
              else
                value.f32_of(chip)[i] = 0.75F;
            }
      }
    };
    Shown clean, garbage;
    VerifyOptions watched;
    watched.observer = &clean;
    EXPECT_EQ(verify_plan(typed, memo, watched).verdict, Verdict::equal);
    options.until = Findings::Until::all;
    options.observer = &garbage;
    // The padding itself has other values, in caches too, until a token is written over it; nothing
    // that is computed of rows' own tokens has.
    for (const Finding& found : verify_plan(typed, memo, options).findings)
      EXPECT_TRUE(found.pass == "prefill.c0" || found.checkpoint.ends_with("_cache"))
          << found.to_string();
    EXPECT_GT(changed, 0);
    EXPECT_EQ(garbage.outputs(), clean.outputs());
  }
}

}  // namespace
}  // namespace shardproof
