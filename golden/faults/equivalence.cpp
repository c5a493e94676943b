#include "golden/faults/equivalence.h"

#include <algorithm>
#include <functional>

#include "golden/faults/detail/edits.h"
#include "golden/faults/detect.h"

namespace shardproof::faults {
namespace {

/// The place of a mutant.
std::optional<Place> place_of(const std::vector<Place>& places, const Site& site) {
  for (const Place& place : places)
    if (place.site == site) return place;
  return std::nullopt;
}

/// The edited plan of moves has the same pieces for every chip, in another order: of a sum whose
/// parts are added exactly, that changes nothing.
bool only_order(const Place& place, const Mutant& mutant) {
  if (!mutant.how->moves || place.is_weight() || !reduces(place.op())) return false;
  const Op& op = place.op();
  const Layout& operand = place.type_of(op.args[0]).layout;
  const Moves right = moves_of(place.torus, op, operand, place.local(op.args[0]));
  const auto changed =
      mutant.how->moves(MovesAt{place.torus, op, operand, right}, mutant.parameter);
  return changed && same_parts(*changed, right, /*added=*/true);
}

/// Whether a value is made of positions, slots and weights alone.
bool of_positions(const PhasePrograms& phase, const Program& program, const std::string& value) {
  if (const Op* const from = program.producer(value))
    return std::all_of(from->args.begin(), from->args.end(),
                       [&](const std::string& arg) { return of_positions(phase, program, arg); });
  const Role& role = program.declared(value).role;
  if (role.kind == Role::Kind::input) return role.name != "ids";
  if (role.kind == Role::Kind::weight || role.kind == Role::Kind::constant) return true;
  const auto& embedded = phase.embed.outputs;
  return program.name != phase.embed.name &&
         std::any_of(embedded.begin(), embedded.end(), [&](const std::string& output) {
           return phase.embed.declared(output).role == role &&
                  of_positions(phase, phase.embed, output);
         });
}

/// The collective or slice moves along the batch what is made of positions alone, and in every pass
/// all rows have the same.
bool equal_positions(const Place& place, const Mutant& mutant) {
  if (!mutant.how->moves || place.is_weight() || place.op().dim != 'B') return false;
  const PhasePrograms& phase =
      place.typed.plan.programs(place.site.phase == "decode" ? Phase::decode : Phase::prefill);
  if (!of_positions(phase, place.program, place.op().args[0])) return false;
  const Passes& passes = place.typed.plan.passes;
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan pass = passes.at(i);
    for (const PassRows& rows : pass.rows)
      if (rows.start != pass.rows[0].start) return false;
  }
  return true;
}

struct Check {
  Reason reason;
  bool (*holds)(const Place&, const Mutant&);
};

const std::vector<Check>& checks() {
  static const std::vector<Check> all{
      {{"order-of-a-sum",
        "every chip adds the same parts in another order: a legal variant, which only rounds "
        "differently"},
       only_order},
      {{"equal-positions",
        "blocks of the batch change places in a value made of positions alone, and in every pass "
        "all rows have the same positions"},
       equal_positions}};
  return all;
}

}  // namespace

const std::vector<Reason>& all_reasons() {
  static const std::vector<Reason> all = [] {
    std::vector<Reason> rows;
    for (const Check& check : checks()) rows.push_back(check.reason);
    return rows;
  }();
  return all;
}

std::string_view reason_of(const TypedPlan& typed, const Mutant& mutant) {
  const std::vector<Place> places = places_of(typed);
  if (const std::optional<Place> place = place_of(places, mutant.site))
    for (const Check& check : checks())
      if (check.holds(*place, mutant)) return check.reason.name;
  return "";
}

std::string equivalent_by(const TypedPlan& typed, const Mutant& mutant, OracleMemo& memo) {
  const std::string_view reason = reason_of(typed, mutant);
  for (std::uint64_t seed = 1; !reason.empty() && seed <= 5; ++seed) {
    Planted planted = plant(typed, mutant);
    planted.run.source_case.seed = 1000 + seed;
    if (!judge_exact(planted.run, &mutant, memo).empty()) return "";
  }
  return std::string(reason);
}

}  // namespace shardproof::faults
