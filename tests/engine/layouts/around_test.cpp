// Embedding, head, sampling and hand-over around a layer, a strategy's or a user's.
#include "engine/layouts/around.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include "engine/strategies/layer_file.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/run_program.h"
#include "tests/engine/strategy_sample.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

const Torus kTorus(4, 2, 3);
const ModelConfig kModel = parse_model("palm-tiny,E=24,F=24,H=24,K=6,Q=2,V=24");

Extents extents_under(const Case& run) { return extents_of(run.model, run.batch, run.prompt); }

TEST(ProgramsAround, AUsersLayerAreThoseOfItsStrategy) {
  for (const Strategy& strategy : all_strategies())
    for (NumberFormat act : {NumberFormat::f32, NumberFormat::bf16}) {
      SCOPED_TRACE(strategy.to_string());
      const Case run = run_under(strategy, kModel, kTorus, act);
      const PhasePrograms built = make_plan(run).prefill;
      const Program read = parse_program("layer", print_program(built.layer), "p.txt");
      const PhasePrograms around =
          programs_around(read, run.model, extents_under(run), kTorus, act);
      EXPECT_EQ(around.layer, built.layer);
      EXPECT_EQ(around.embed, built.embed);
      EXPECT_EQ(around.head, built.head);
      EXPECT_EQ(around.sample, built.sample);
      EXPECT_EQ(around.residual, built.residual);
      EXPECT_EQ(around.cache, built.cache);
    }
}

/// A layer that does nothing but end in other layouts than it begins in.
const char* const kStrayed = R"(input x : B_xLE is in
input k_old : BMKQ is previous k_cache
input v_old : BMKQ is previous v_cache
xg : BLE = all_gather(x, B, x) is in
out : BLE = add(xg, xg) is out
kc : B_zMKQ = slice(k_old, B, z) is k_cache
vc : BMKQ = scale_by(v_old, embed_scale) is v_cache
output kc, out, vc
)";

TEST(ProgramsAround, LeadALayersOutAndCachesBack) {
  Case run = run_under(Strategy(), kModel, kTorus);
  run.batch = 12;
  const PhasePrograms around = programs_around(parse_program("layer", kStrayed), run.model,
                                               extents_under(run), kTorus, NumberFormat::f32);
  EXPECT_EQ(around.residual.to_string(), "B_xLE");
  EXPECT_EQ(around.cache.to_string(), "BMKQ");
  const Program& layer = around.layer;
  ASSERT_EQ(layer.ops.size(), 6U);
  EXPECT_EQ(layer.ops[4].to_string(), "all_gather(kc, B, z)");
  EXPECT_EQ(layer.ops[4].results[0].role.to_string(), "k_cache");
  EXPECT_EQ(layer.ops[5].to_string(), "slice(out, B, x)");
  EXPECT_EQ(layer.outputs, (std::vector<std::string>{layer.ops[4].results[0].name,
                                                     layer.ops[5].results[0].name, "vc"}));
  EXPECT_EQ(message_of([&] { check(layer, run, 2, 3); }), "");
}

TEST(ProgramsAround, TakeNamesThatTheLayerHasNot) {
  // What kc would be called after a step is an input's name.
  std::string text = kStrayed;
  text.insert(0, "input kc_1 : BLE is in\n");
  Case run = run_under(Strategy(), kModel, kTorus);
  run.batch = 12;
  const Program layer = programs_around(parse_program("layer", text), run.model, extents_under(run),
                                        kTorus, NumberFormat::f32)
                            .layer;
  EXPECT_EQ(layer.outputs[0], "kc_2");
  EXPECT_EQ(parse_program("layer", print_program(layer)), layer);
}

TEST(ProgramsAround, GatherPositionsBeforeTheLastIsTaken) {
  const PhasePrograms phase = phase_under(Strategy::parse("sp:1d"), kModel, kTorus);
  EXPECT_EQ(phase.residual.to_string(), "BL_zyxE");
  std::size_t last = 0;
  while (phase.head.ops[last].kind != OpKind::last) ++last;
  EXPECT_EQ(phase.head.declared(phase.head.ops[last].args[0]).layout.axes('L'), Axes());
}

TEST(ProgramsAround, TheBiasOfTheLogitsIsAddedOnceWhereTheyAreComplete) {
  for (const Strategy& strategy : all_strategies()) {
    ModelConfig model = kModel;
    model.unembed_bias = true;
    const Program head = phase_under(strategy, model, kTorus).head;
    const Op& last = head.ops.back();
    EXPECT_EQ(last.to_string(), "bias(zs, ub)");
    EXPECT_EQ(last.results[0].role.to_string(), "logits");
    EXPECT_EQ(head.declared("zs").role.to_string(), "scaled logits");
    EXPECT_EQ(head.declared("zs").layout.to_string(), "BV_zyx");
    EXPECT_EQ(head.declared("ub").layout.to_string(), "V_zyx");
    int biases = 0;
    for (const Op& op : head.ops) biases += op.kind == OpKind::bias;
    EXPECT_EQ(biases, 1);
  }
}

TEST(ProgramsAround, OnlyLayerAndHandOverRunOnceForEachLayer) {
  const PhasePrograms phase = phase_under(Strategy::parse("ws2d:batch"), kModel, kTorus);
  Scope scope;
  scope.pass = "decode.1";
  scope.layer = 1;
  for (const Program* once : {&phase.embed, &phase.head, &phase.sample}) {
    EXPECT_FALSE(once->of_layer()) << once->name;
    EXPECT_EQ(scope.step(*once, "x"), "decode.1." + once->name + ".x");
  }
  const Program moves =
      hand_over(Layout::parse("BMKQ"), Layout::parse("B_xMKQ"), extents_of(kModel, 24, 1), kTorus);
  EXPECT_TRUE(phase.layer.of_layer());
  EXPECT_TRUE(moves.of_layer());
  EXPECT_EQ(scope.step(phase.layer, "x"), "decode.1.layer1.x");
  EXPECT_EQ(scope.step(moves, "k"), "decode.1.layer1.hand_over.k");
}

TEST(ProgramsAround, SayWhereThePrefixesAreRead) {
  Case run = run_under(Strategy::parse("ws2d:batch"), kModel, kTorus);
  EXPECT_EQ(make_plan(run).prefill.prefix_cache, Layout());
  run.prompt = run.chunk = 6;
  run.prefix = {2, 6};
  EXPECT_EQ(make_plan(run).prefill.prefix_cache.to_string(), "N_zyTKQ");
  EXPECT_EQ(make_plan(run).prefill.cache.to_string(), "B_zyxMKQ");
}

TEST(PrefixHandOver, RunsOnceForEachLayerUnderANameOfItsOwn) {
  const Extents extents = extents_of(kModel, 24, 1, {5, 6});
  const Layout from = Layout::parse("N_zyTKQ"), to = Layout::parse("NTK_zyQ");
  Scope scope;
  scope.pass = "prefix.c1";
  scope.layer = 1;
  for (const Program& program :
       {prefix_hand_over(from, to, extents, kTorus), prefix_to_decode(from, to, extents, kTorus)}) {
    EXPECT_TRUE(program.of_layer());
    EXPECT_EQ(scope.step(program, "k"), "prefix.c1.layer1." + program.name + ".k");
    ASSERT_EQ(program.inputs.size(), 2U);
    ASSERT_EQ(program.outputs.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      const char* const role = i == 0 ? "prefix k_cache" : "prefix v_cache";
      EXPECT_EQ(program.inputs[i].role.to_string(), role);
      EXPECT_EQ(program.inputs[i].layout, from);
      EXPECT_EQ(program.declared(program.outputs[i]).role.to_string(), role);
      EXPECT_EQ(program.declared(program.outputs[i]).layout, to);
    }
    EXPECT_EQ(program.ops.size(), 2U);  // an all_to_all of each
  }
  EXPECT_TRUE(prefix_hand_over(to, to, extents, kTorus).ops.empty());
  EXPECT_NE(prefix_hand_over(from, to, extents, kTorus).name,
            prefix_to_decode(from, to, extents, kTorus).name);
  // Five prefixes are not cut six ways.
  EXPECT_EQ(label_of([&] {
              prefix_hand_over(to, from, extents_of(kModel, 24, 1, {5, 5}), kTorus);
            }),
            "path_c2");
}

TEST(PrefixHandOver, BatchAndSlotsArePrefixesAndPositionsByOtherNames) {
  EXPECT_EQ(as_prefixes(Layout::parse("B_zyMK_xQ")).to_string(), "N_zyTK_xQ");
  EXPECT_EQ(as_prefixes(Layout::parse("BMKQ")).to_string(), "NTKQ");
}

RC_GTEST_PROP(PrefixHandOver, KeepsEveryElementInItsPlace, ()) {
  const Torus torus = draw_torus();
  const std::int64_t n = torus.chips();
  const ModelConfig model = with_dims(kModel, n, n, n, n, n);
  // T and Q are never cut.
  const auto layout = [] {
    const std::vector<Axes> bins = draw_bins(3);
    return Layout({{'N', bins[1]}, {'T', {}}, {'K', bins[2]}, {'Q', {}}}, {});
  };
  const Layout from = layout(), to = layout();
  const Shape shape{n, 3, n, 2};
  const Tensor cache = tensor_of(shape);
  const Program program = prefix_hand_over(from, to, extents_of(model, n, 1, {3, n}), torus);
  RC_ASSERT(parse_program(program.name, print_program(program)) == program);
  const auto out = run_program(print_program(program), torus, {{"k", cache}, {"v", cache}});
  RC_ASSERT(same_bits(*out.at(program.outputs[1]), shard(cache, to, torus)));
}

TEST(HandOver, HasNoStepsBetweenCachesThatLieAlike) {
  const Extents extents = extents_of(kModel, 24, 1);
  const Layout cache = Layout::parse("B_zyxMKQ");
  const Program none = hand_over(cache, cache, extents, kTorus);
  EXPECT_TRUE(none.ops.empty());
  EXPECT_EQ(none.outputs.size(), 2U);
  EXPECT_EQ(
      label_of([&] { hand_over(Layout::parse("BMKQ"), cache, extents_of(kModel, 12, 1), kTorus); }),
      "path_c2");
}

TEST(HandOver, ChecksAndKeepsEveryCacheSlot) {
  for (const char* size : {"1x1x1", "4x2x3", "1x2x3", "3x2x1", "2x2x2", "3x1x5"}) {
    const Torus torus = Torus::parse(size);
    const std::int64_t n = torus.chips();
    // Of every strategy's caches, with K sharded as far as H, over z, and not at all.
    const std::int64_t Z = torus.size(Axis::z);
    for (std::int64_t K : {std::int64_t{1}, Z, n}) {
      const ModelConfig model = with_dims(kModel, n, n, n, K, n);
      const std::vector<Layout> layouts = cache_layouts(all_strategies(), model, torus);
      const Shape shape{n, 2, K, 2};
      const Tensor cache = tensor_of(shape);
      for (const Layout& from : layouts)
        for (const Layout& to : layouts) {
          SCOPED_TRACE(from.to_string() + " to " + to.to_string() + " on " + size);
          const Program program = hand_over(from, to, extents_of(model, n, 1), torus);
          EXPECT_EQ(parse_program(program.name, print_program(program)), program);
          const auto types = check(program, {{"k", shape}, {"v", shape}}, torus);
          for (const std::string& output : program.outputs) EXPECT_EQ(types.at(output).layout, to);
          const auto out = run_program(print_program(program), torus, {{"k", cache}, {"v", cache}});
          EXPECT_TRUE(same_bits(*out.at(program.outputs[1]), shard(cache, to, torus)));
        }
    }
  }
}

}  // namespace
}  // namespace shardproof
