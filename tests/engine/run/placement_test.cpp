// Resident weights are placed once, whatever runs on them.
#include "engine/run/placement.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "engine/run/inference.h"
#include "engine/run/plan.h"
#include "tests/weights/expect_error.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

/// How often each weight was placed in each layout.
struct Count {
  std::map<std::string, int> placed;
  FaultHooks hooks;
  Count() {
    hooks.weight = [this](const std::string& name, Sharded& value) {
      ++placed[name + " " + value.layout().to_string()];
    };
  }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;
};

/// What the programs ask for: each weight in each layout that a phase declares.
std::map<std::string, int> wanted(const RunPlan& plan) {
  std::map<std::string, int> all;
  for (const PhasePrograms* phase : {&plan.prefix, &plan.prefill, &plan.decode})
    for (const Program* program : {&phase->embed, &phase->layer, &phase->head})
      for (const ValueDecl& input : program->inputs) {
        if (input.role.kind == Role::Kind::constant) all["ones " + input.layout.to_string()] = 1;
        if (input.role.kind != Role::Kind::weight) continue;
        for (std::int64_t layer = 0; layer < plan.source_case.model.layers; ++layer)
          all[weight_id(layer, input.role.name) + " " + input.layout.to_string()] = 1;
      }
  return all;
}

TEST(PlacedWeights, AreMadeOnceForAllPassesAndPhasesThatAgree) {
  for (const char* line :
       {"prefill=ws2d:heads prompt=4 chunk=1 gen=4", "prefill=ws2d:heads decode=ws2d:batch gen=3",
        "prefill=wg-xyz:batch decode=ws1d:heads gen=3", "prefill=ws1d:heads gen=1",
        "prefill=ws2d:batch prefix=2:4 gen=2", "prefill=wg-xyz:batch prefix=2:6 gen=1"}) {
    const RunPlan plan = make_plan(parse_case(
        "torus=2x1x3 model=palm-tiny,layers=2,norm=layernorm batch=6 " + std::string(line)));
    const Weights weights = generate_weights(plan.source_case.model, 1);
    const IntTensor prompt = generate_prompt(plan.source_case.model, 1, plan.passes.batch(),
                                             plan.passes.prompt(), plan.source_case.prefix);
    Threads threads(1);
    Count count;
    run_inference(plan, weights, prompt, threads, nullptr, {}, count.hooks);
    EXPECT_EQ(count.placed, wanted(plan)) << line;
  }
}

TEST(PlacedWeights, AreOneValueForAllWhoAskForTheSame) {
  const RunPlan plan = make_plan(parse_case("torus=2x1x3 prefill=ws2d:heads batch=6"));
  const Weights weights = generate_weights(plan.source_case.model, 1);
  Count count;
  PlacedWeights placed(weights, weights.config(), NumberFormat::f32, count.hooks);
  placed.place(plan.prefill);
  const std::map<std::string, int> once = count.placed;
  placed.place(plan.prefill);
  std::map<std::string, SharedValue> first, again, next, elsewhere;
  const Program& layer = plan.prefill.layer;
  placed.supply(layer, plan.prefill.torus, 0, first);
  placed.supply(layer, plan.prefill.torus, 0, again);
  placed.supply(layer, plan.prefill.torus, 1, next);
  EXPECT_EQ(first, again);
  EXPECT_EQ(count.placed, once);
  ASSERT_TRUE(first.contains("wq"));
  EXPECT_NE(first.at("wq"), next.at("wq"));
  for (const auto& [name, value] : first) EXPECT_EQ(value->torus(), Torus(2, 1, 3)) << name;
  // Another torus has chips of its own.
  placed.supply(layer, Torus(1, 2, 3), 0, elsewhere);
  EXPECT_NE(first.at("wq"), elsewhere.at("wq"));
  EXPECT_EQ(elsewhere.at("wq")->torus(), Torus(1, 2, 3));
}

// In the field element i of a weight is input i of the stream of its name (docs/field.md section
// 1.2), in the shape that it has in files.
TEST(PlacedWeights, InTheFieldAreStreamsOfTheirNames) {
  const RunPlan plan = make_plan(
      parse_case("torus=2x1x3 prefill=ws2d:heads batch=6 regime=field seed=4 "
                 "model=palm-tiny,layers=2,E=12,F=24,H=6,K=2,Q=4,V=18,norm=layernorm,bias=all"));
  const Weights weights = generate_weights(plan.source_case.model, 1);
  const auto field = std::make_shared<const Field>(FieldSetting{.seed = 4});
  const FaultHooks none;
  PlacedWeights placed(weights, weights.config(), NumberFormat::f32, none, field);
  std::set<std::string> seen;
  for (const Program* program : {&plan.prefill.embed, &plan.prefill.layer, &plan.prefill.head})
    for (const int layer : {0, 1}) {
      std::map<std::string, SharedValue> inputs;
      placed.supply(*program, plan.prefill.torus, layer, inputs);
      for (const ValueDecl& input : program->inputs) {
        if (input.role.kind != Role::Kind::weight) continue;
        const std::string id = weight_id(layer, input.role.name);
        seen.insert(id);
        const Sharded& value = *inputs.at(input.name);
        Array<FieldElement> whole(weights.at(id)->shape);
        ASSERT_EQ(value.shape(), whole.shape) << id;
        const FieldFunction stream("weight " + id);
        for (std::size_t i = 0; i < whole.data.size(); ++i) whole.data[i] = field->input(stream, i);
        EXPECT_EQ(value.field().values,
                  shard(whole, input.layout, plan.prefill.torus, field).field().values)
            << id;
      }
    }
  EXPECT_EQ(seen.size(), weights.names().size());
}

TEST(PlacedWeights, AreOfTheModel) {
  const RunPlan plan = make_plan(parse_case("torus=2x1x3 prefill=ws2d:heads batch=6"));
  const Weights weights = generate_weights(plan.source_case.model, 1);
  PhasePrograms other = plan.prefill;
  other.layer.inputs.push_back({.name = "w",
                                .layout = Layout::parse("E"),
                                .role = Role::parse("weight norm2_gain"),
                                .line = {}});
  const FaultHooks none;
  PlacedWeights placed(weights, weights.config(), NumberFormat::f32, none);
  EXPECT_EQ(label_of([&] { placed.place(other); }), "weights_name");
}

}  // namespace
}  // namespace shardproof
