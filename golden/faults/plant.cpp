#include "golden/faults/plant.h"

#include <fmt/format.h>

#include <algorithm>

#include "golden/faults/cases.h"
#include "golden/faults/detail/numbers.h"

namespace shardproof::faults {
namespace {

/// Whether a step of a run is a mutant's site.
bool is_at(const Site& site, const Scope& scope, const Program& program, const Op& op) {
  return program.name == site.program && op.results[0].name == site.value &&
         (site.phase == "hand_over" || scope.pass.starts_with(site.phase));
}

/// The layer of "layer1.wq", -1 of a weight of the whole model; nullopt for another weight.
std::optional<int> layer_of(const Site& site, const std::string& id, const ModelConfig& model) {
  const ModelRows* const rows = model.rows.get();
  const WeightRow* const row = weight_row(site.value, rows);
  for (int layer = 0; row != nullptr && layer < model.layers; ++layer)
    if (id == weight_id(layer, site.value, rows)) return row->per_layer ? layer : -1;
  return std::nullopt;
}

/// Whether the prefill has the same step, in the same words and layouts.
bool same_step(const Place& place, const PhasePrograms& prefill) {
  std::vector<const Program*> programs = prefill.all();
  programs.push_back(&prefill.sample);
  return std::any_of(programs.begin(), programs.end(), [&](const Program* program) {
    return program->name == place.program.name &&
           std::find(program->ops.begin(), program->ops.end(), place.op()) != program->ops.end();
  });
}

const Place* find_place(const std::vector<Place>& places, const Site& site) {
  const auto at = std::find_if(places.begin(), places.end(),
                               [&](const Place& place) { return place.site == site; });
  return at == places.end() ? nullptr : &*at;
}

}  // namespace

Planted plant(const TypedPlan& typed, const Mutant& mutant) {
  const std::vector<Place> places = places_of(typed);
  const Place* const place = find_place(places, mutant.site);
  if (place == nullptr)
    throw Error("faults_only", fmt::format("the case has no site {}", mutant.site.to_string()));
  const std::vector<std::string> legal = mutant.how->parameters(*place);
  if (std::find(legal.begin(), legal.end(), mutant.parameter) == legal.end())
    throw Error("faults_only",
                fmt::format("{} does not apply at {} with the parameter '{}'", mutant.how->name,
                            mutant.site.to_string(), mutant.parameter));
  Planted made{nullptr, typed.plan};
  const auto edited = [&](const ProgramEdit& edit) {
    auto plan = std::make_unique<RunPlan>(typed.plan);
    edit(program_at(*plan, mutant.site), place->index, mutant.parameter);
    return plan;
  };
  if (mutant.how->written) made.written = edited(mutant.how->written);
  if (mutant.how->planted) {
    made.written = edited(mutant.how->planted);
    made.run = *made.written;
  }
  return made;
}

FaultHooks hooks_of(const Mutant& mutant, const Case& c, const Seen& seen) {
  const Operator& how = *mutant.how;
  FaultHooks hooks;
  if (how.moves)
    hooks.plan = [&mutant, &how, &c](const Scope& scope, const Program& program, const Op& op,
                                     Moves& plan) {
      if (!is_at(mutant.site, scope, program, op)) return;
      const Moves right = plan;
      const MovesAt at{c.torus, op, program.declared(op.args[0]).layout, right};
      if (auto changed = how.moves(at, mutant.parameter)) plan = std::move(*changed);
    };
  if (how.result)
    hooks.result = [&mutant, &c, &seen, edit = how.result()](
                       const Scope& scope, const Program& program, const Op& op,
                       const ValueDecl& declared, Sharded& value) {
      if (is_at(mutant.site, scope, program, op))
        edit({c, scope, program, op, declared, seen, mutant.parameter}, value);
    };
  if (how.planted)
    hooks.result = [regime = c.numerics.regime](const Scope&, const Program&, const Op&,
                                                const ValueDecl& declared, Sharded& value) {
      believe(declared.layout, regime, value);
    };
  if (how.weight)
    hooks.weight = [&mutant, &c, edit = how.weight(mutant.parameter)](const std::string& id,
                                                                      Sharded& placed) {
      if (const auto layer = layer_of(mutant.site, id, c.model)) edit(c, *layer, placed);
    };
  return hooks;
}

std::vector<Mutant> mutants_of(const TypedPlan& typed, std::string_view kind) {
  std::vector<Mutant> all;
  const std::vector<Place> places = places_of(typed);
  for (const Operator& how : all_operators()) {
    if (how.cases != kind && kind != kOwnCase) continue;
    for (const Place& place : places) {
      if (!how.in_both_phases() && place.site.phase == "decode" &&
          same_step(place, typed.plan.prefill))
        continue;
      for (std::string& parameter : how.parameters(place))
        all.push_back({&how, place.site, std::move(parameter)});
    }
  }
  return all;
}

}  // namespace shardproof::faults
