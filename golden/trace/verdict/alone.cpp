#include "golden/trace/verdict/alone.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "engine/numeric/threads.h"
#include "golden/compare/reach_meter.h"
#include "golden/rerun/exact.h"
#include "golden/trace/value/detail/each_number.h"
#include "golden/trace/value/last_rows.h"
#include "golden/trace/verdict/rerun_arithmetic.h"
#include "weights/text/rules.h"
#include "weights/text/text_model.h"

namespace shardproof::dump {
namespace {

constexpr int kRuns = 32;

/// Returns whether reruns have every declared error: they have none of functions with more ulp than
/// usual, of truncating adders, or of constants folded into factors.
bool is_drawn(const bounds::DeclaredArithmetic& by) {
  const bounds::Ulp usual;
  const bool functions = by.ulp.exp <= usual.exp && by.ulp.erf <= usual.erf &&
                         by.ulp.tanh <= usual.tanh && by.ulp.sigmoid <= usual.sigmoid &&
                         by.ulp.rsqrt <= usual.rsqrt;
  return functions && !by.adding.truncates() && by.folded == 0;
}

/// Returns whether nearly equal numbers of a text may give values that are far from one another, as
/// of another choice of experts does: the runs may show none where one other has some.
bool has_jumps(const ModelConfig& model) {
  const TextModel* const text = text_model(model);
  return text != nullptr &&
         (!has_meaning_in_field(model) || has_any(text->flat(), {ModelOp::floor, ModelOp::round}));
}

/// Returns whether a row's bound is uninformative because operands are missing, and not because the
/// replicas of an operand differ.
bool is_alone(const Row& row, const Subject& subject) {
  return (row.fit == Fit::near || row.fit == Fit::not_judged) &&
         subject.meaning == Meaning::checkpoint && !row.incomplete && row.unknown == 0 &&
         !row.needs.empty() && row.extent.worst > 0 && !(row.extent.worst < row.extent.scale);
}

/// Largest distance of a value from the exact one, and where it is.
struct Furthest {
  double drift = 0.0;
  WrongElement at;
  std::map<int, std::int64_t> not_finite = {};  ///< by chip
};

class Weighing {
 public:
  Weighing(const Values& values, const Claim& claim, Reference& reference)
      : values_(values), claim_(claim), reference_(reference), passes_(claim.source_case.passes()) {
    for (std::int64_t i = 0; i < passes_.size(); ++i)
      ids_[passes_.at(i).name] = reference.ids(passes_.at(i).name);
  }

  void weigh(std::vector<Row>& rows) {
    std::vector<Row*> alone;
    std::vector<rerun::RequestedValue> all;
    for (Row& row : rows) {
      const DumpedValue& dumped = values_.dumped[row.dumped];
      if (!is_alone(row, dumped.subject)) continue;
      rerun::RequestedValue a = asked(dumped);
      if (a.exact == nullptr) continue;
      alone.push_back(&row);
      all.push_back(std::move(a));
    }
    if (alone.empty()) return;
    rerun::Arithmetic arithmetic = rerun_arithmetic(claim_.declared);
    const auto theirs = distances(arithmetic, all);
    std::vector<std::vector<double>> by_chance(all.size());
    arithmetic.by_chance = rerun::rounds_coarsely(arithmetic, claim_.source_case.model);
    if (arithmetic.by_chance) by_chance = distances(arithmetic, all);
    for (std::size_t i = 0; i < alone.size(); ++i)
      if (!theirs[i].empty()) settle(*alone[i], all[i], theirs[i], by_chance[i]);
  }

 private:
  rerun::Question question(const rerun::Arithmetic& arithmetic) const {
    return {reference_.weights(), passes_, ids_, arithmetic};
  }
  std::vector<std::vector<double>> distances(const rerun::Arithmetic& arithmetic,
                                             const std::vector<rerun::RequestedValue>& all) {
    return rerun::distances(question(arithmetic), all, kRuns, claim_.source_case.seed,
                            reference_.threads());
  }

  /// Asks for the whole value; only elements that the trace has count.
  rerun::RequestedValue asked(const DumpedValue& dumped) {
    const Subject& s = dumped.subject;
    rerun::RequestedValue a{s.id, exact(s), dumped.padding};
    if (!s.last || a.exact == nullptr) return a;
    a.left_out.assign(a.exact->data.size(), true);
    std::size_t row = 0;
    for (const std::size_t element :
         last_elements(a.exact->shape, reference_.replay().pass(s.pass)))
      a.left_out[element] = dumped.padded(static_cast<std::int64_t>(row++));
    return a;
  }

  /// Returns the exact regime's value for the trace's ids.
  const Tensor* exact(const Subject& s) {
    if (reference_.on_same_ids(s.pass)) return reference_.exact(s.last ? s.whole() : s);
    if (!other_)
      other_ = rerun::exact_of(question({}), claim_.source_case.numerics, machine_threads());
    const auto found = other_->checkpoints.find(s.id);
    return found == other_->checkpoints.end() ? nullptr : &found->second;
  }

  Furthest furthest(const DumpedValue& dumped, const rerun::RequestedValue& asked) const {
    std::vector<std::size_t> elements;  // indices of the last positions, if held
    if (dumped.subject.last)
      elements = last_elements(asked.exact->shape, reference_.replay().pass(dumped.subject.pass));
    Furthest most;
    double distance = -1.0;
    each_number(dumped, [&](double v, const std::vector<int>& chips, std::int64_t place, double) {
      const auto i = static_cast<std::size_t>(place);
      const auto exact = static_cast<double>(asked.exact->data[elements.empty() ? i : elements[i]]);
      double d = std::abs(v * dumped.unit(place) - exact);
      if (!std::isfinite(d)) d = std::numeric_limits<double>::infinity();
      for (const int chip : std::isfinite(v) ? std::vector<int>() : chips) ++most.not_finite[chip];
      if (d <= distance) return;
      distance = d;
      most.at = {chips[0], global_index(dumped.subject.shape, place), exact / dumped.unit(place),
                 exact / dumped.unit(place), v};
    });
    const double scale = rerun::root_mean_square(asked);
    most.drift = distance > 0 ? distance / scale : 0.0;
    return most;
  }

  void settle(Row& row, const rerun::RequestedValue& asked, const std::vector<double>& theirs,
              const std::vector<double>& by_chance) const {
    using Says = rerun::Evidence::Says;
    const DumpedValue& dumped = values_.dumped[row.dumped];
    const Furthest most = furthest(dumped, asked);
    row.drift = most.drift;
    row.evidence = rerun::weigh(most.drift, theirs, by_chance);
    // Reruns have only usual functions, adders and factors.
    if (row.evidence->says == Says::not_rounding &&
        (!is_drawn(claim_.declared) || has_jumps(claim_.source_case.model)))
      row.evidence->says = Says::unclear;
    switch (row.evidence->says) {
      case Says::rounding:
        row.fit = Fit::near;
        row.why.clear();
        break;
      case Says::unclear:
        row.fit = Fit::not_judged;
        row.why = "operands are missing";
        break;
      case Says::not_rounding:
        row.fit = Fit::unlikely;
        row.why = "it is further from exact than rounding takes it";
        row.first = row.worst = most.at;
        for (const auto& [chip, count] : most.not_finite) {
          row.not_finite += count;
          row.wrong_parts[chip] = {count, std::numeric_limits<double>::infinity()};
        }
        break;
    }
  }

  const Values& values_;
  const Claim& claim_;
  Reference& reference_;
  Passes passes_;
  std::map<std::string, IntTensor> ids_;
  std::optional<oracle::Answer> other_;
};

}  // namespace

void weigh_alone(const Values& values, const Claim& claim, Reference& reference,
                 std::vector<Row>& rows) {
  // After a wrong value, the drift of later values is not independent evidence.
  const bool wrong = std::any_of(rows.begin(), rows.end(),
                                 [](const Row& row) { return row.fit == Fit::different; });
  const bool any = std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
    return is_alone(row, values.dumped[row.dumped].subject);
  });
  if (any && !wrong) Weighing(values, claim, reference).weigh(rows);
}

}  // namespace shardproof::dump
