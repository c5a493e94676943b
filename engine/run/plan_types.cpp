#include "engine/run/plan_types.h"

#include "weights/error.h"
#include "weights/registry.h"

namespace shardproof {

ValueTypes check(const Program& program, const Case& c, std::int64_t L, std::int64_t M) {
  const ModelConfig& m = c.model;
  std::map<std::string, Shape> inputs;
  for (const Result& input : program.inputs) {
    const Meaning& role = input.meaning;
    if (role.kind == Meaning::Kind::weight && has_weight(m, role.name))
      inputs[input.name] = shape_of(weight_row(role.name)->dims, m);
    const ValueRow* const row = value_row(role);
    const bool of_this_pass = role.kind == Meaning::Kind::checkpoint ||
                              role.kind == Meaning::Kind::input ||
                              role.kind == Meaning::Kind::constant;
    if (row != nullptr && row->handed && !role.last &&
        (of_this_pass || (role.kind == Meaning::Kind::previous && row->cache)))
      inputs[input.name] = shape_of(row->dims, m, {c.batch, L, M});
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
