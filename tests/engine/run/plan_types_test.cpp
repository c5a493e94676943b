// The types of a plan's values: of the first and the last of the passes that are alike.
#include "engine/run/plan_types.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

const std::string kLine = "torus=2x1x3 model=palm-tiny,K=6 ";

RunPlan typed_plan_of(const std::string& line) { return make_plan(parse_case(kLine + line)); }

/// The shape of the value of a program that is this.
Shape shape(const Program& program, const ValueTypes& types, const std::string& role) {
  for (const ValueDecl& input : program.inputs)
    if (input.role.to_string() == role) return types.at(input.name).shape;
  for (const Op& op : program.ops)
    for (const ValueDecl& result : op.results)
      if (result.role.to_string() == role) return types.at(result.name).shape;
  return {};
}

/// "prefill 2 L=3 M=0..6": a group, and M of its caches before its first and after its last pass.
std::string text(const RunPlan& plan, const TypedPasses& group) {
  const Program& layer = plan.programs(group.phase).layer;
  const char* const phase = group.phase == Phase::prefix    ? "prefix "
                            : group.phase == Phase::prefill ? "prefill "
                                                            : "decode ";
  return phase + std::to_string(group.count) + " L=" + std::to_string(group.L) +
         " M=" + std::to_string(shape(layer, group.first.layer, "previous k_cache").at(1)) + ".." +
         std::to_string(shape(layer, group.last.layer, "k_cache").at(1));
}

std::vector<std::string> texts(const RunPlan& plan, const PlanTypes& types) {
  std::vector<std::string> all;
  for (const TypedPasses& group : types.passes) all.push_back(text(plan, group));
  return all;
}

using Texts = std::vector<std::string>;

TEST(PlanTypes, AreThoseOfTheFirstAndLastPassOfEachGroup) {
  const RunPlan plan = typed_plan_of("prompt=7 chunk=3 gen=4 prefill=ws2d:heads decode=ws2d:batch");
  const PlanTypes types = check(plan);
  EXPECT_EQ(texts(plan, types),
            (Texts{"prefill 2 L=3 M=0..6", "prefill 1 L=1 M=6..7", "decode 3 L=1 M=7..10"}));
  for (const TypedPasses& group : types.passes) {
    const PhasePrograms& programs = plan.programs(group.phase);
    // What depends on L alone is alike in both; what depends on M grows.
    for (const PassTypes* pass : {&group.first, &group.last}) {
      EXPECT_EQ(shape(programs.embed, pass->embed, "embed"), (Shape{6, group.L, 96}));
      EXPECT_EQ(shape(programs.head, pass->head, "logits"), (Shape{6, 264}));
      EXPECT_EQ(shape(programs.sample, pass->sample, "token"), (Shape{6}));
    }
    EXPECT_EQ(shape(programs.layer, group.last.layer, "k_cache").at(1) -
                  shape(programs.layer, group.first.layer, "k_cache").at(1),
              group.L * (group.count - 1));
  }
  // The hand-over is of the whole prefill's caches.
  EXPECT_EQ(shape(plan.hand_over, types.hand_over, "k_cache"), (Shape{6, 7, 6, 8}));
}

TEST(PlanTypes, AreOfPrefixesAtTheirOwnBatch) {
  const RunPlan plan =
      typed_plan_of("prompt=9 chunk=2 gen=3 prefix=5:3 prefill=ws2d:batch decode=ws1d:batch");
  const PlanTypes types = check(plan);
  EXPECT_EQ(texts(plan, types), (Texts{"prefix 2 L=2 M=0..4", "prefix 1 L=1 M=4..5",
                                       "prefill 2 L=2 M=0..4", "decode 2 L=1 M=4..6"}));
  const TypedPasses& over = types.passes[0];
  EXPECT_EQ(shape(plan.prefix.embed, over.first.embed, "embed"), (Shape{3, 2, 96}));
  EXPECT_EQ(shape(plan.prefix.layer, over.last.layer, "k_cache"), (Shape{3, 4, 6, 8}));
  EXPECT_EQ(shape(plan.prefix.layer, over.last.layer, "score"), (Shape{3, 2, 24, 4}));
  EXPECT_EQ(shape(plan.prefix.layer, over.last.layer, "prefix k_cache"), Shape{});
  // The rows' own: what is cached is behind the prefix, and scored are both.
  for (const auto& [group, L, M] : {std::tuple{2, 2, 4}, {3, 1, 6}}) {
    const TypedPasses& own = types.passes[static_cast<std::size_t>(group)];
    const Program& layer = plan.programs(own.phase).layer;
    EXPECT_EQ(shape(layer, own.last.layer, "k_cache"), (Shape{6, M, 6, 8}));
    EXPECT_EQ(shape(layer, own.last.layer, "prefix k_cache"), (Shape{3, 5, 6, 8}));
    EXPECT_EQ(shape(layer, own.last.layer, "prefix v_cache"), (Shape{3, 5, 6, 8}));
    EXPECT_EQ(shape(layer, own.last.layer, "score"), (Shape{6, L, 24, 5 + M}));
    EXPECT_EQ(shape(layer, own.last.layer, "attn"), (Shape{6, L, 24, 8}));
  }
  EXPECT_EQ(shape(plan.hand_over, types.hand_over, "k_cache"), (Shape{6, 4, 6, 8}));
  for (const auto& [program, its] : {std::pair{&plan.prefix_hand_over, &types.prefix_hand_over},
                                     {&plan.prefix_to_decode, &types.prefix_to_decode}})
    EXPECT_EQ(shape(*program, *its, "prefix v_cache"), (Shape{3, 5, 6, 8}));
  // check() of one program of a case says the same.
  const ValueTypes one = check(plan.decode.layer, plan.source_case, 1, 5);
  EXPECT_EQ(shape(plan.decode.layer, one, "prefix k_cache"), (Shape{3, 5, 6, 8}));
  EXPECT_EQ(shape(plan.decode.layer, one, "score"), (Shape{6, 1, 24, 11}));
}

TEST(PlanTypes, AreNoneWherePrefixesAreIllTyped) {
  const auto label = [](const std::function<void(RunPlan&)>& change) {
    RunPlan plan =
        typed_plan_of("prompt=9 chunk=2 gen=3 prefix=5:3 prefill=ws2d:batch decode=ws1d:batch");
    change(plan);
    Findings findings;
    const bool typed = check(plan, findings).has_value();
    return typed ? std::string("legal") : findings.all()[0].label + " in " + findings.all()[0].pass;
  };
  EXPECT_EQ(label([](RunPlan&) {}), "legal");
  // Each of the programs is looked at, in the pass that runs it.
  const auto gone = [](Program& program) { program.outputs.push_back("nothing"); };
  EXPECT_EQ(label([&](RunPlan& plan) { gone(plan.prefix.layer); }), "program_c1 in prefix.c0");
  EXPECT_EQ(label([&](RunPlan& plan) { gone(plan.prefix_hand_over); }), "program_c1 in prefix.c2");
  EXPECT_EQ(label([&](RunPlan& plan) { gone(plan.prefix_to_decode); }), "program_c1 in prefill.c1");
  // The prefixes' caches are taken as attention can have them.
  const auto taken = [](RunPlan& plan, const char* layout) {
    for (ValueDecl& input : plan.prefill.layer.inputs)
      if (input.role.kind == Role::Kind::prefix) input.layout = Layout::parse(layout);
  };
  EXPECT_EQ(label([&](RunPlan& plan) { taken(plan, "N_zTKQ"); }), "program_c7 in prefill.c0");
  EXPECT_EQ(label([&](RunPlan& plan) { taken(plan, "NT_yKQ"); }), "attend_prefix_c4 in prefill.c0");
  EXPECT_EQ(label([&](RunPlan& plan) { taken(plan, "BMKQ"); }), "program_c5 in prefill.c0");
}

TEST(PlanTypes, AreOfThePassesOfThePlan) {
  RunPlan plan = typed_plan_of("prompt=7 chunk=7 gen=1 prefill=ws2d:heads");
  EXPECT_EQ(texts(plan, check(plan)), Texts{"prefill 1 L=7 M=0..7"});
  // Others in their place, of unequal rows and more of them.
  std::vector<PassPlan> passes;
  for (const auto& [L, cached] : {std::pair{2, 0}, {2, 2}, {1, 4}, {1, 5}, {1, 6}}) {
    PassPlan pass;
    pass.phase = cached < 4 ? Phase::prefill : Phase::decode;
    pass.L = L;
    pass.cached = cached;
    pass.rows = {{.rows = 6, .start = cached, .tokens = L}, {.rows = 6, .start = 0, .tokens = 1}};
    passes.push_back(pass);
  }
  plan.passes = Passes(passes);
  const PlanTypes types = check(plan);
  EXPECT_EQ(texts(plan, types), (Texts{"prefill 2 L=2 M=0..4", "decode 3 L=1 M=4..7"}));
  EXPECT_EQ(shape(plan.prefill.embed, types.passes[0].first.embed, "embed"), (Shape{12, 2, 96}));
  EXPECT_EQ(shape(plan.hand_over, types.hand_over, "k_cache"), (Shape{12, 4, 6, 8}));
}

TEST(PlanTypes, AreThoseOfEachPhasesTorus) {
  RunPlan plan = typed_plan_of("prompt=4 gen=2 prefill=ws2d:heads");
  EXPECT_NO_THROW(check(plan));
  plan.decode.torus = Torus(5, 1, 1);  // divides nothing
  EXPECT_NE(label_of([&] { check(plan); }), "");
}

TEST(PlanTypes, AreNoneWhereAProgramIsIllTyped) {
  const Case c = parse_case(kLine + "prompt=4 gen=3 prefill=ws2d:heads");
  RunPlan plan = make_plan(c);
  for (Op& op : plan.decode.layer.ops)
    if (op.kind == OpKind::reduce_scatter) op.kind = OpKind::all_gather;
  Findings first, all(Findings::Until::all);
  EXPECT_FALSE(check(plan, first));
  EXPECT_FALSE(check(plan, all));
  ASSERT_EQ(first.all().size(), 1U);
  EXPECT_EQ(first.all()[0].detector, Detector::types);
  EXPECT_GE(all.all().size(), first.all().size());
  EXPECT_EQ(label_of([&] { check(plan); }), first.all()[0].label);
  const TypedPlan typed = make_typed_plan(c);
  EXPECT_TRUE(typed.types && typed.findings.empty());
}

/// A change of one program of a run that is well typed by itself, and what is said of it.
struct Mismatch {
  const char* keys;
  void (*change)(RunPlan&);
  const char* pass;
  const char* message;  ///< "" if it is legal
};

Extents extents(const RunPlan& plan) {
  return extents_of(plan.placed, plan.passes.batch(), 1, plan.passes.prefix());
}

TEST(PlanTypes, AreNoneWhereWhatIsHandedOverIsTakenOtherwise) {
  const std::string two = "gen=3 prefill=ws2d:batch decode=wg-x:natural ";
  const std::string prefixes = two + "prompt=9 chunk=2 prefix=5:3 ";
  const std::string split = two + "decode_torus=1x2x3 ";
  const std::vector<Mismatch> rows{
      {two.c_str(), [](RunPlan&) {}, "", ""},
      {prefixes.c_str(), [](RunPlan&) {}, "", ""},
      {split.c_str(), [](RunPlan&) {}, "", ""},
      // The moves left out: each program by itself is well typed.
      {two.c_str(),
       [](RunPlan& plan) {
         plan.hand_over =
             hand_over(plan.prefill.cache, plan.prefill.cache, extents(plan), plan.prefill.torus);
       },
       "decode.1",
       "decode.1.layer0.k_old: declared B_xMK_zyQ, but hand_over hands over B_zyxMKQ as 'previous "
       "k_cache'"},
      // A layout that the prefill does not leave caches in.
      {two.c_str(),
       [](RunPlan& plan) {
         plan.hand_over =
             hand_over(plan.decode.cache, plan.decode.cache, extents(plan), plan.prefill.torus);
       },
       "prefill.c0", "but prefill layer hands over B_zyxMKQ as 'k_cache'"},
      // To another torus caches arrive as they are taken.
      {split.c_str(),
       [](RunPlan& plan) {
         plan.hand_over =
             hand_over(plan.decode.cache, plan.decode.cache, extents(plan), plan.decode.torus);
       },
       "", ""},
      {split.c_str(),
       [](RunPlan& plan) {
         plan.hand_over =
             hand_over(plan.prefill.cache, plan.prefill.cache, extents(plan), plan.decode.torus);
       },
       "decode.1", "hand_over hands over B_zyxMKQ as 'previous k_cache'"},
      {prefixes.c_str(),
       [](RunPlan& plan) {
         plan.prefix_to_decode =
             prefix_to_decode(plan.prefill.prefix_cache, plan.prefill.prefix_cache, extents(plan),
                              plan.prefill.torus);
       },
       "decode.1", "prefix_to_decode hands over"},
      {two.c_str(), [](RunPlan& plan) { plan.hand_over.outputs.pop_back(); }, "decode.1",
       "hand_over hands over nothing as 'previous v_cache'"},
      // Inside of a pass.
      {two.c_str(), [](RunPlan& plan) { plan.decode.head = plan.prefill.head; }, "decode.1",
       "but decode layer hands over"}};
  for (const Mismatch& row : rows) {
    RunPlan plan = typed_plan_of(row.keys);
    row.change(plan);
    Findings findings;
    const bool typed = check(plan, findings).has_value();
    EXPECT_EQ(typed, *row.message == 0) << row.message;
    if (typed || *row.message == 0) {
      for (const Finding& found : findings.all()) ADD_FAILURE() << found.message;
      continue;
    }
    ASSERT_EQ(findings.all().size(), 1U);
    const Finding& found = findings.all()[0];
    EXPECT_EQ(found.label, "program_c7") << found.message;
    EXPECT_EQ(found.detector, Detector::types);
    EXPECT_EQ(found.pass, row.pass) << found.message;
    EXPECT_NE(found.message.find(row.message), std::string::npos) << found.message;
  }
}

TEST(PlanTypes, SayOfAllHandOversThatAreTakenOtherwise) {
  RunPlan plan = typed_plan_of("gen=3 prefill=ws2d:batch decode=wg-x:natural");
  plan.hand_over =
      hand_over(plan.prefill.cache, plan.prefill.cache, extents(plan), plan.prefill.torus);
  Findings all(Findings::Until::all);
  EXPECT_FALSE(check(plan, all));
  EXPECT_EQ(all.all().size(), 2U);  // keys and values, though each layer has them
}

}  // namespace
}  // namespace shardproof
