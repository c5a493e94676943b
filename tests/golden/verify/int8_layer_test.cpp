// Layers for int8 weights as text are refused where a scale comes too early; codes and scales that
// are wrong on one chip are found, whichever chip it is.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "golden/verify/verify.h"
#include "tests/golden/layer_text.h"
#include "tests/sanitized.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// The program with the scale of step `at` moved before the step that completes the sum; whether
/// there is such a step.
bool scaled_early(Program& program, std::size_t at) {
  Op& scale = program.ops[at];
  for (Op& op : program.ops) {
    if (op.results[0].name != scale.args[0] || !is_collective(op.kind)) continue;
    const Layout partial = program.declared(op.args[0]).layout;
    if (!partial.is_partial()) return false;
    for (ValueDecl& input : program.inputs)  // the scale itself is where it has to be
      if (input.name == scale.args[1])
        input.layout = Layout({partial.dims().begin() + 2, partial.dims().end()}, {});
    std::swap(op, scale);  // now `op` scales
    op.args[0] = std::exchange(scale.args[0], scale.results[0].name + "_early");
    std::swap(op.results[0], scale.results[0]);
    op.results[0] = scale.results[0];
    op.results[0].name += "_early";
    op.results[0].layout = partial;
    return true;
  }
  return false;
}

TEST(Int8Layer, AScaleBeforeTheSumIsCompleteIsRefused) {
  std::set<std::string> refusals;
  for (const char* regime : {"exact", "f32"})
    for (const char* model : {"palm-tiny", "palm-tiny,block=serial,bias=all,norm=layernorm"})
      for (const Strategy& strategy : sample_strategies()) {
        Case c = parse_case(fmt::format(
            "torus=4x2x3 model={},layers=1,E=24,F=24,H=24,K=24,Q=2,V=24 batch=24 prompt=3 gen=3 "
            "weights=int8 regime={}",
            model, regime));
        c = fitted(c, strategy);
        const std::string text = text_of(strategy, c);
        const Program layer = parse_program("layer", text, "p.txt");
        for (std::size_t i = 0; i < layer.ops.size(); ++i) {
          if (layer.ops[i].kind != OpKind::scale) continue;
          Program early = layer;
          if (!scaled_early(early, i)) continue;
          std::string why;
          EXPECT_TRUE(refused(print_program(early), c, why)) << print_program(early);
          EXPECT_TRUE(why.starts_with("scale_c1: p.txt line ")) << why << print_program(early);
          EXPECT_NE(why.find(" partialsum-"), std::string::npos) << why;
          refusals.insert(layer.ops[i].args[1] + " " + regime);
        }
      }
  for (const WeightRow& row : all_weights())
    for (const char* regime : {"exact", "f32"})
      if (row.kind == WeightKind::scale) {
        EXPECT_TRUE(refusals.contains(fmt::format("{} {}", row.name, regime))) << row.name;
      }
}

/// Every matrix and every scale of a layer, on every chip of 4x2x3: where they are sharded in their
/// contracted dims, and where they are not.
TEST(Int8Layer, ACodeOrAScaleThatIsOffOnOneChipIsFound) {
  OneInN chosen(9, "chips");
  std::set<std::string> scales;
  for (const char* keys : {"prefill=ws2d:batch model=palm-tiny,bias=all",
                           "prefill=ws1d:heads act=bf16 block=serial"}) {
    Case c =
        parse_case(std::string("torus=4x2x3 weights=int8 batch=24 prompt=1 gen=2 seed=6 ") + keys);
    c.model.layers = 1;
    c.model.E = c.model.F = c.model.H = c.model.K = c.model.V = 24;
    c.model.Q = 2;
    OracleMemo memo;
    ASSERT_EQ(verify_case(c, memo).verdict, Verdict::equal) << keys;
    for (const WeightRow& row : all_weights()) {
      if (!row.in_model(c.model) ||
          (row.kind != WeightKind::scale && row.kind != WeightKind::matrix) || !row.per_layer)
        continue;
      if (row.kind == WeightKind::scale) scales.emplace(row.name);
      for (int chip = 0; chip < c.torus.chips(); ++chip) {
        if (!chosen()) continue;
        const std::string name = fmt::format("layer0.{}", row.name);
        FaultHooks faults;
        faults.weight = [&](const std::string& id, Sharded& placed) {
          if (id != name) return;
          const auto own = placed.f32_of(chip);
          float& v = own[own.size() / 2];
          v = row.kind == WeightKind::scale ? std::nextafter(v, 0.0F)
                                            : v + (v > 0.0F ? -1.0F : 1.0F);
        };
        const Judgement j = verify_case(c, memo, {.faults = faults});
        ASSERT_TRUE(j.difference()) << name << " on chip " << chip << ": " << j.explanation();
        EXPECT_EQ(j.difference()->checkpoint, "weight " + name);
        EXPECT_EQ(j.difference()->chip, c.torus.name(chip)) << name;
      }
    }
  }
  for (const WeightRow& row : all_weights())
    EXPECT_EQ(scales.contains(std::string(row.name)), row.kind == WeightKind::scale) << row.name;
}

}  // namespace
}  // namespace shardproof
