#include "engine/run/plan_types.h"

#include <utility>

#include "engine/run/detail/handed_values.h"
#include "engine/run/detail/type_check.h"
#include "engine/run/dim_padding.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"
#include "weights/text/text_model.h"

namespace shardproof {

namespace {

/// The global shapes of a program's inputs.
std::map<std::string, Shape> input_shapes(const Program& program, const ModelConfig& m,
                                          const PassExtents& pass) {
  std::map<std::string, Shape> inputs;
  for (const ValueDecl& input : program.inputs) {
    const Role& role = input.role;
    const ModelRows* const rows = m.rows.get();
    if (role.kind == Role::Kind::weight && has_weight(m, role.name, NumberFormat::int8))
      inputs[input.name] = shape_of(weight_row(role.name, rows)->dims, m);
    const ValueRow* const row = value_row(role, rows);
    const bool of_this_pass = role.kind == Role::Kind::checkpoint ||
                              role.kind == Role::Kind::input || role.kind == Role::Kind::constant;
    const bool from_before = role.kind == Role::Kind::previous || role.kind == Role::Kind::prefix;
    if (row == nullptr || !row->program_input || (role.last && rows == nullptr) ||
        !(of_this_pass || (from_before && row->cache)))
      continue;
    PassExtents extents = pass;
    if (rows != nullptr && !row->cache) extents.M += pass.L + pass.T;  // the slots after the pass
    inputs[input.name] = shape_of(dims_of(role, rows), m, extents);
  }
  return inputs;
}

}  // namespace

ValueTypes check(const Program& program, const Case& c, std::int64_t L, std::int64_t M) {
  const PassExtents pass{c.batch, L, M, c.prefix.rows, c.prefix.length};
  return check(program, input_shapes(program, placed_model(c), pass), c.torus);
}

ValueTypes check(const Program& program, const ModelConfig& model, const Torus& torus,
                 const PassExtents& pass, Findings& findings) {
  return check(program, input_shapes(program, model, pass), torus, findings);
}

std::optional<PlanTypes> check(const RunPlan& plan, Findings& findings) {
  const std::vector<Passes::Group> groups = plan.passes.groups();
  // The names of the last pass over the prefixes and of the last prefill pass, which samples.
  std::string prefixed, prefilled;
  for (const Passes::Group& group : groups) {
    const PassPlan pass = plan.passes.at(group.last);
    if (pass.phase == Phase::prefix) prefixed = pass.name;
    if (pass.phase == Phase::prefill) prefilled = pass.name;
  }
  TypeCheck type_check(plan.placed, findings);
  const auto typed = [&](const PassPlan& pass) {
    const PhasePrograms& programs = plan.programs(pass.phase);
    const auto of = [&](const Program& program, const std::string& in) {
      return type_check.types(
          program, in, programs.torus,
          {pass.batch(), pass.L, pass.cached, pass.prefix.rows, pass.prefix.length});
    };
    // The order decides which finding comes first.
    PassTypes types;
    types.layer = of(programs.layer, pass.name);
    for (const Program& other : programs.other_layers)
      types.other_layers.push_back(of(other, pass.name));
    types.embed = of(programs.embed, pass.name);
    types.head = of(programs.head, pass.name);
    types.sample = of(programs.sample, pass.sample ? pass.name : prefilled);
    return types;
  };
  PlanTypes types;
  for (const Passes::Group& group : groups) {
    const PassPlan first = plan.passes.at(group.first);
    TypedPasses passes{first.phase, first.L, group.count(), typed(first), {}};
    passes.last = group.count() > 1 ? typed(plan.passes.at(group.last)) : passes.first;
    types.passes.push_back(std::move(passes));
  }
  const std::int64_t M = plan.passes.cached_by_prefill();
  const SharedPrefix prefix = plan.passes.prefix();
  const PassExtents caches{plan.passes.batch(), M, M, prefix.rows, prefix.length};
  const auto of_caches = [&](const Program& program, const std::string& in, const Torus& torus) {
    return type_check.types(program, in, torus, caches);
  };
  const Torus& torus = plan.hand_over_torus();
  types.hand_over = of_caches(plan.hand_over, prefilled, torus);
  for (const Program& other : plan.other_hand_overs) of_caches(other, prefilled, torus);
  for (const Program& other : plan.other_prefix_hand_overs)
    of_caches(other, prefixed, plan.prefill.torus);
  for (const Program& other : plan.other_prefixes_to_decode) of_caches(other, prefilled, torus);
  if (prefix.given()) {
    types.prefix_hand_over = of_caches(plan.prefix_hand_over, prefixed, plan.prefill.torus);
    types.prefix_to_decode = of_caches(plan.prefix_to_decode, prefilled, torus);
  }
  if (findings.all().empty()) check_handed_values(plan, findings);
  if (!findings.all().empty()) return std::nullopt;
  return types;
}

PlanTypes check(const RunPlan& plan) {
  Findings findings;
  std::optional<PlanTypes> types = check(plan, findings);
  if (!types) throw Error(findings.all()[0].label, findings.all()[0].message);
  return *std::move(types);
}

TypedPlan make_typed_plan(const Case& c, Findings::Until until) {
  TypedPlan typed = make_typed_plan(make_plan(c, until), until);
  if (!typed.types && text_model(c.model) != nullptr) throw FindingsError(typed.findings);
  return typed;
}

TypedPlan make_typed_plan(RunPlan plan, Findings::Until until) {
  TypedPlan typed{std::move(plan), {}, {}};
  Findings findings(until);
  typed.types = check(typed.plan, findings);
  typed.findings = findings.all();
  if (!typed.types && has_program(typed.plan.source_case)) throw FindingsError(typed.findings);
  return typed;
}

}  // namespace shardproof
