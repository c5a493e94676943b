// Layers for int8 weights as text are refused where a scale comes too early.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "tests/golden/layer_text.h"
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

}  // namespace
}  // namespace shardproof
