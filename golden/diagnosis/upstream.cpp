// Faults of values that the dump lacks: each is put where it happens, and followed to the wrong
// value.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

using bounds::IntervalTensor;
/// The most products with weights, and numbers, that all candidates of one value are followed
/// through.
constexpr double kProducts = 0x1p28;
constexpr std::string_view kLacking = ", which the dump lacks";

using Values = std::vector<std::pair<std::string, IntervalTensor>>;

/// Returns the ids of the values of the layer, which the dump lacks, that the question's follows
/// from; each comes behind one that is computed from it.
std::vector<std::string> missing_operands(const Question& q) {
  const bounds::Derivation& replay = q.replay();
  std::vector<std::string> all, open{q.id()};
  while (!open.empty()) {
    const std::string of = std::move(open.back());
    open.pop_back();
    for (const std::string& id : q.step_of(of).operands()) {
      const bounds::Derivation::Place place = replay.place_of(id);
      if (replay.dumped(id) || place.pass != q.place().pass || place.layer != q.place().layer ||
          place.name == "ids" || std::find(all.begin(), all.end(), id) != all.end())
        continue;
      all.push_back(id);
      open.push_back(id);
    }
  }
  return all;
}

/// Returns how many products with weights the value and its missing operands are made of, and how
/// many numbers these have.
double products_of(const Question& q, const std::vector<std::string>& missing) {
  double products = 0.0;
  const auto add = [&](const Step& step) {
    const PassPlan& pass = q.replay().pass(q.place().pass);
    for (const TextWeight* const weight : step.weights(WeightKind::matrix))
      products +=
          static_cast<double>(element_count(q.replay().weights().shape(step.weight_id(*weight)))) *
          static_cast<double>(pass.batch() * pass.L);
  };
  add(q.step());
  for (const std::string& id : missing) {
    add(q.step_of(id));
    products += static_cast<double>(q.replay().value(id).size());
  }
  return products;
}

/// Returns whether an expression is a sum that has this value as an addend.
bool only_adds(const Expression& e, const std::string& name) {
  if (e.kind == Expression::Kind::name) return e.text == name;
  if (e.op != ModelOp::add && e.op != ModelOp::store) return false;
  return std::any_of(e.args.begin(), e.args.end(),
                     [&](const Expression& arg) { return only_adds(arg, name); });
}

/// Returns whether a value that the dump lacks is computed from another one.
bool reads(const Question& q, const std::string& of, const std::string& id) {
  if (q.replay().dumped(of) || q.replay().place_of(of).pass != q.place().pass) return false;
  const std::vector<std::string>& operands = q.step_of(of).operands();
  return std::any_of(operands.begin(), operands.end(), [&](const std::string& operand) {
    return operand == id || reads(q, operand, id);
  });
}

/// Returns whether the value is a sum of this operand, and no other addend is computed from it, so
/// that its differences are the operand's.
bool is_addend(const Question& q, const std::string& id) {
  const std::vector<TextLine>& lines = q.step_of(q.id()).lines();
  for (const std::string& other : q.step_of(q.id()).operands())
    if (other != id && reads(q, other, id)) return false;
  return q.summed().empty() && lines.size() == 1 && q.replay().value(id).shape == q.shape() &&
         only_adds(lines[0].expression, q.replay().place_of(id).name);
}

/// Returns an operand: as its differences show it if it is an addend, otherwise right.
Wrong operand_of(const Question& q, const std::string& id) {
  const bounds::Derivation::Place place = q.replay().place_of(id);
  const ValueRow& row = *value_row(place.name, &q.step().graph().model());
  const IntervalTensor right = q.replay().expected(id);
  const bool adds = is_addend(q, id);
  Wrong operand =
      q.other(id, adds && !q.whole() ? q.layout() : Layout::parse(std::string(row.dims)),
              {right.rounded(q.replay().format_at(place)).center});
  if (!adds) return operand;
  operand.shards.clear();
  for (int chip = 0; chip < q.chips(); ++chip) {
    std::vector<double>& shard = operand.shards.emplace_back(q.shard(chip));
    for (std::size_t i = 0; i < shard.size(); ++i) {
      const std::size_t g = q.global(chip, i);
      shard[i] += right.center[g] - q.expected().center[g];
    }
  }
  return operand;
}

/// Returns whether a candidate may predict an addend as the differences of the sum show it.
bool may_fit(const Question& sum, const Question& addend, const Candidate& candidate) {
  for (int chip = 0; chip < addend.chips(); ++chip)
    for (std::size_t i = 0; i < addend.elements(); ++i) {
      const std::size_t g = sum.global(chip, i);
      const bounds::FunctionValue number = candidate.at(chip, i);
      const double rounding = bounds::unit_of(sum.format()) * std::abs(sum.shard(chip)[i]);
      const double reach = number.radius + 2 * (sum.expected().radius[g] + rounding) +
                           bounds::least_of(sum.format());
      if (!sum.right(chip, i) && std::abs(number.center - addend.shard(chip)[i]) > reach)
        return false;
    }
  return true;
}

/// Returns what a candidate predicts for a whole value, as later operations read it.
IntervalTensor predicted(const Question& at_fault, const Candidate& candidate) {
  IntervalTensor tensor = at_fault.expected();
  for (int chip = at_fault.chips(); chip-- > 0;)
    for (std::size_t i = 0; i < at_fault.elements(); ++i)
      tensor.set(at_fault.global(chip, i), candidate.at(chip, i));
  return tensor.rounded(at_fault.format());
}

/// Returns whether some number is surely another one.
bool differs(const IntervalTensor& a, const IntervalTensor& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::abs(a.center[i] - b.center[i]) > a.radius[i] + b.radius[i]) return true;
  return false;
}

/// Tries what follows for the question's value from others.
void try_values(const Question& q, Search& search, Candidate candidate, const Values& values) {
  std::string names;
  for (const auto& [id, value] : values)
    names += (names.empty() ? "" : " and ") + q.replay().place_of(id).name;
  candidate.detail +=
      fmt::format("{}in {}{}", candidate.detail.empty() ? "" : ", ", names, kLacking);
  candidate.parameters += 200;
  if (!search.wants(candidate)) return;
  Replaced replaced(q);
  for (const auto& [id, value] : values) replaced.put(id, value, candidate.fault == "mask");
  Trial(q, search).try_replaced(std::move(candidate), std::move(replaced));
}

}  // namespace

bool in_missing_operand(std::string_view candidate) {
  return candidate.find(kLacking) != candidate.npos ||
         candidate.find(kAttentionReads.substr(0, kAttentionReads.find(" {"))) != candidate.npos;
}

void try_missing_operands(const Question& q, Search& search) {
  if (q.raw()) return;
  const std::vector<std::string> missing = missing_operands(q);
  const double products = products_of(q, missing);
  double left = kProducts;
  // Positions are those of all that is turned, slots those of all caches, and a fused weight has
  // several parts.
  std::map<std::string, std::pair<Candidate, Values>> of_several;
  for (const std::string& id : missing) {
    if (left < products) return;
    const Question at_fault(q.replay(), operand_of(q, id));
    const bool several =
        at_fault.step().calls(ModelOp::turn) || at_fault.step().calls(ModelOp::append);
    const bool addend = is_addend(q, id);
    search.redirect([&](Candidate candidate) {
      if (left < products || (addend && !may_fit(q, at_fault, candidate))) return;
      Values values{{id, predicted(at_fault, candidate)}};
      if (!differs(values[0].second, at_fault.expected())) return;
      candidate.at = {};
      left -= products;
      if (several || candidate.shared) {
        auto& [first, all] =
            of_several
                .try_emplace(fmt::format("{}: {}", candidate.fault, candidate.detail), candidate,
                             Values())
                .first->second;
        all.push_back(values[0]);
        if (candidate.shared) return;
      }
      try_values(q, search, std::move(candidate), values);
    });
    // Scores that are masked are read by no exponential. Of a text's values they do not exist, and
    // the step of the question shows other masks.
    const bool masks = q.step().graph().of_keys() && exponentiates(at_fault);
    for (const Row& row : rows())
      if ((masks || row.fault != "mask") &&
          (row.stage == Stage::once || row.stage == Stage::last) && row.where(at_fault))
        row.edit(at_fault, search, row);
    search.redirect({});
  }
  for (auto& [name, tried] : of_several)
    if (tried.second.size() > 1 || tried.first.shared)
      try_values(q, search, tried.first, tried.second);
  if (!search.explained_everywhere()) try_reads_of_any(q, search);
  // The first row of factors is that of any value.
  const Row& factor = *std::find_if(rows().begin(), rows().end(),
                                    [](const Row& row) { return row.fault == kFactor; });
  for (const std::string& id : missing)
    if (left > 0 && !search.explained_everywhere())
      left -= products *
              try_fitted_factor(q, search, factor, id,
                                fmt::format(", in {}{}", q.replay().place_of(id).name, kLacking));
}

}  // namespace shardproof::diagnosis
