// What is the same formula is found equal: other tables, chunks, dtypes and loops; rescalings and
// scales that move; heads and pairs that change places.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "tests/golden/equal_cases.h"
#include "tests/golden/verify/field/mutant.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

TEST(FieldAlarms, NoneOfTablesChunksDtypesAndLoops) { expect_equal_cases("tables in the field"); }

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
      same.hooks = [&, by = change](const Case&, const LatestValues&, FaultHooks& hooks) {
        hooks.weight = [&, by](const std::string& name, Sharded& placed) {
          const auto before = bits_of(placed);
          by(name, placed);
          if (before != bits_of(placed)) changed.insert(name);
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
  moved.hooks = [](const Case&, const LatestValues& shown, FaultHooks& hooks) {
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

}  // namespace
}  // namespace shardproof
