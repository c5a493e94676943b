#include "golden/faults/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace shardproof::faults {
namespace {

/// The types of the last passes of a phase: caches are filled.
const PassTypes* types_of(const TypedPlan& typed, Phase phase) {
  const PassTypes* found = nullptr;
  for (const TypedPasses& passes : typed.types->passes)
    if (passes.phase == phase) found = &passes.last;
  return found;
}

/// The steps of a program; of several layers' programs a step of one name is one site, that of the
/// first.
void add_steps(const TypedPlan& typed, const std::string& phase, const Torus& torus,
               const Program& program, const ValueTypes& types, std::vector<Place>& all) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    Site site{phase, program.name, program.ops[i].results[0].name};
    if (std::none_of(all.begin(), all.end(), [&](const Place& one) { return one.site == site; }))
      all.push_back({typed, std::move(site), torus, program, i, &types});
  }
}

void add_weights(const TypedPlan& typed, const Torus& torus, const Program& program,
                 const ValueTypes& types, std::set<std::string>& met, std::vector<Place>& all) {
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const ValueDecl& input = program.inputs[i];
    if (input.role.kind == Role::Kind::weight && met.insert(input.role.name).second)
      all.push_back({typed, {"weights", program.name, input.role.name}, torus, program, i, &types});
  }
}

/// Whether a program has the step of this name, or reads the weight.
bool has_site(const Program& program, const Site& site) {
  if (site.phase != "weights") return program.producer(site.value) != nullptr;
  return std::any_of(program.inputs.begin(), program.inputs.end(), [&](const ValueDecl& input) {
    return input.role.kind == Role::Kind::weight && input.role.name == site.value;
  });
}

}  // namespace

bool Place::in_layer(std::int64_t layer) const {
  const PhasePrograms& phase =
      typed.plan.programs(site.phase == "decode" ? Phase::decode : Phase::prefill);
  return has_site(phase.layer_program(layer), site);
}

const WeightRow& Place::weight() const {
  return *weight_row(site.value, source_case().model.rows.get());
}

Shape Place::local(const std::string& value) const {
  const Type& type = type_of(value);
  return local_shape(type.layout, type.shape, torus);
}

std::vector<Place> places_of(const TypedPlan& typed) {
  std::vector<Place> all;
  const RunPlan& plan = typed.plan;
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const PassTypes* const types = types_of(typed, phase);
    if (types == nullptr) continue;
    const PhasePrograms& programs = plan.programs(phase);
    const std::string name = phase == Phase::prefill ? "prefill" : "decode";
    add_steps(typed, name, programs.torus, programs.embed, types->embed, all);
    add_steps(typed, name, programs.torus, programs.layer, types->layer, all);
    for (std::size_t n = 0; n < programs.other_layers.size(); ++n)
      add_steps(typed, name, programs.torus, programs.other_layers[n], types->other_layers.at(n),
                all);
    add_steps(typed, name, programs.torus, programs.head, types->head, all);
    add_steps(typed, name, programs.torus, programs.sample, types->sample, all);
  }
  if (plan.passes.decodes())
    add_steps(typed, "hand_over", plan.hand_over_torus(), plan.hand_over, typed.types->hand_over,
              all);
  std::set<std::string> met;
  if (const PassTypes* const types = types_of(typed, Phase::prefill)) {
    const PhasePrograms& prefill = plan.prefill;
    add_weights(typed, prefill.torus, prefill.embed, types->embed, met, all);
    add_weights(typed, prefill.torus, prefill.layer, types->layer, met, all);
    for (std::size_t n = 0; n < prefill.other_layers.size(); ++n)
      add_weights(typed, prefill.torus, prefill.other_layers[n], types->other_layers.at(n), met,
                  all);
    add_weights(typed, prefill.torus, prefill.head, types->head, met, all);
  }
  return all;
}

Program& program_at(RunPlan& plan, const Site& site) {
  if (site.program == kHandOverProgram) return plan.hand_over;
  PhasePrograms& phase = site.phase == "decode" ? plan.decode : plan.prefill;
  std::vector<Program*> programs{&phase.embed, &phase.layer, &phase.head, &phase.sample};
  for (Program& other : phase.other_layers) programs.push_back(&other);
  std::erase_if(programs, [&](const Program* one) { return one->name != site.program; });
  for (Program* const one : programs)
    if (has_site(*one, site)) return *one;
  if (!programs.empty()) return *programs.front();  // a program that was edited
  throw Error("faults_only", fmt::format("the site {} names no program", site.to_string()));
}

Moves moves_of(const Torus& torus, const Op& op, const Layout& operand, const Shape& local) {
  const auto dim = [&](char letter) { return operand.find(letter).value(); };
  switch (op.kind) {
    case OpKind::all_gather:
      return all_gather_moves(torus, local, dim(op.dim), op.axes);
    case OpKind::reduce_scatter:
      return reduce_scatter_moves(torus, local, dim(op.dim), op.axes);
    case OpKind::all_reduce:
      return all_reduce_moves(torus, local, op.axes);
    case OpKind::all_to_all:
      return all_to_all_moves(torus, local, dim(op.dim), dim(op.to), op.axes, op.as);
    case OpKind::permute_axes:
      return permute_axes_moves(torus, local, op.axes, op.as);
    default:
      return slice_moves(torus, local, dim(op.dim), op.axes);
  }
}

bool same_parts(const Moves& a, const Moves& b, bool added) {
  const auto parts = [added](const std::vector<Piece>& pieces) {
    std::vector<std::tuple<int, std::int64_t, std::int64_t>> all;
    for (const Piece& piece : pieces) all.emplace_back(piece.from_chip, piece.from, piece.to);
    if (added) std::sort(all.begin(), all.end());
    return all;
  };
  if (a.from_local != b.from_local || a.to_local != b.to_local || a.block != b.block ||
      a.pieces.size() != b.pieces.size())
    return false;
  for (std::size_t chip = 0; chip < a.pieces.size(); ++chip)
    if (parts(a.pieces[chip]) != parts(b.pieces[chip])) return false;
  return true;
}

}  // namespace shardproof::faults
