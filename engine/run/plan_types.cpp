#include "engine/run/plan_types.h"

#include "weights/error.h"
#include "weights/registry.h"

namespace shardproof {

ValueTypes check(const Program& program, const Case& c, std::int64_t L, std::int64_t M) {
  const ModelConfig& m = c.model;
  const Shape cache{c.batch, M, m.K, m.Q};
  const std::map<std::string, Shape> known{
      {"in", {c.batch, L, m.E}},   {"out", {c.batch, L, m.E}}, {"input ids", {c.batch, L}},
      {"input pos", {c.batch, L}}, {"logits", {c.batch, m.V}}, {"previous k_cache", cache},
      {"previous v_cache", cache}, {"k_cache", cache},         {"v_cache", cache}};
  std::map<std::string, Shape> inputs;
  for (const Result& input : program.inputs) {
    if (const auto at = known.find(input.meaning.to_string()); at != known.end())
      inputs[input.name] = at->second;
    if (input.meaning.kind == Meaning::Kind::constant) inputs[input.name] = {m.E};
    if (input.meaning.kind != Meaning::Kind::weight) continue;
    for (const WeightSpec& spec : weight_specs(m))
      if (spec.name == input.meaning.name || spec.name == "layer0." + input.meaning.name)
        inputs[input.name] = spec.shape;
  }
  return check(program, inputs, c.torus);
}

PlanTypes check(const RunPlan& plan) {
  const auto typed = [&](const PassPlan& pass) {
    const PhasePrograms& programs = plan.programs(pass.phase);
    const auto of = [&](const Program& program) {
      return check(program, plan.given, pass.L, pass.cached);
    };
    // In this order, which says what is reported first.
    PassTypes types;
    types.layer = of(programs.layer);
    types.embed = of(programs.embed);
    types.head = of(programs.head);
    types.sample = of(programs.sample);
    return types;
  };
  PlanTypes types;
  for (const Passes::Alike& group : plan.passes.alike()) {
    const PassPlan first = plan.passes.at(group.first);
    TypedPasses passes{first.phase, first.L, group.count(), typed(first), {}};
    passes.last = group.count() > 1 ? typed(plan.passes.at(group.last)) : passes.first;
    types.passes.push_back(std::move(passes));
  }
  types.hand_over = check(plan.hand_over, plan.given, plan.given.prompt, plan.given.prompt);
  return types;
}

TypedPlan make_typed_plan(const Case& c) {
  TypedPlan typed{make_plan(c), {}, {}};
  try {
    typed.types = check(typed.plan);
  } catch (const Error& error) {
    if (has_program(c)) throw;
    typed.ill_typed = error.what();
  }
  return typed;
}

}  // namespace shardproof
