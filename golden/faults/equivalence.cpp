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

/// The collective or slice moves rows' positions along the batch, and in every pass all rows have
/// the same.
bool equal_positions(const Place& place, const Mutant& mutant) {
  if (!mutant.how->moves || place.is_weight() || place.op().dim != 'B') return false;
  const Role& role = place.program.declared(place.op().args[0]).role;
  // A layer's one input of the pass.
  if (role.kind != Role::Kind::input || place.program.name != kLayerProgram) return false;
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
        "blocks of the batch's positions change places, and in every pass all rows have the same "
        "positions"},
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
