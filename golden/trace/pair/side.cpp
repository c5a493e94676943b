#include "golden/trace/pair/side.h"

#include <algorithm>
#include <set>
#include <utility>

#include "golden/trace/pair/whole_value.h"
#include "golden/trace/verdict/notes.h"
#include "golden/trace/verdict/wrong_value.h"
#include "weights/model/registry.h"

namespace shardproof::dump {
namespace {

/// Returns the ids of a value's operands; empty if it is not a checkpoint.
std::vector<std::string> operands_of(const std::string& id, const bounds::Derivation& replay) {
  try {
    return replay.operands(id);
  } catch (const Error& error) {
    if (error.label() != "bounds_c1") throw;
    return {};
  }
}

void add_operands(const std::string& id, const bounds::Derivation& replay,
                  std::map<std::string, std::vector<std::string>>& all) {
  std::vector<std::string> left{id};
  while (!left.empty()) {
    const std::string next = std::move(left.back());
    left.pop_back();
    const auto [found, is_new] = all.try_emplace(next);
    if (!is_new) continue;
    found->second = operands_of(next, replay);
    left.insert(left.end(), found->second.begin(), found->second.end());
  }
}

/// Returns whether a value follows from its own operands by what is declared. A verdict by reruns
/// alone is not enough.
bool is_right(const Row& row, const Subject& s, const JudgedTrace& of,
              const std::set<std::string>& same_everywhere) {
  if (row.follows) return true;
  if (row.evidence || row.fit > Fit::loose) return false;
  if (row.fit < Fit::loose) return true;
  std::vector<std::string> operands;
  if (s.meaning == Meaning::token || s.meaning == Meaning::indices)
    operands = {s.pass + ".logits"};
  else if (const auto found =
               of.operands.find(id_of_operands(s, of.claim.source_case.model.rows.get()));
           found != of.operands.end())
    operands = found->second;
  return row.needs.empty() && std::all_of(operands.begin(), operands.end(), [&](const auto& id) {
           return same_everywhere.contains(id);
         });
}

JudgedValue without_numbers(const DumpedValue& dumped, const Values& values, const Claim& claim) {
  JudgedValue value{dumped.name,
                    dumped.subject,
                    stored_format(dumped, claim),
                    "",
                    dumped.exact,
                    std::any_of(dumped.shards.begin(), dumped.shards.end(),
                                [](const auto& shard) { return !shard.empty(); }),
                    false,
                    false};
  for (const Values::Laid& laid : values.laid)
    if (value.layout.empty() && laid.subject.title() == dumped.subject.title())
      value.layout = laid.layout.to_string();
  return value;
}

}  // namespace

std::string id_of_operands(const Subject& value, const ModelRows* rows) {
  const ValueRow* const row = value_row(value.name, rows);
  if (value.meaning != Meaning::stat || row == nullptr || row->norm.empty()) return value.id;
  return value.id.substr(0, value.id.rfind('.') + 1) + std::string(row->norm);
}

JudgedTrace judged_trace(const Dump& dump, Claim claim, std::shared_ptr<const Weights> weights,
                         int runs) {
  JudgedTrace found;
  found.claim = std::move(claim);
  found.weights = std::move(weights);
  const Values values = read_values(dump, found.claim, *found.weights);
  Reference reference(values, found.claim, *found.weights);
  found.verdict = judge(values, found.claim, reference);
  found.notes = notes_of(values, found.claim, reference, found.verdict);
  found.diagnosis = diagnosed(found.verdict, values, found.claim, reference);
  for (const Row& row : found.verdict.rows)
    found.values.push_back(without_numbers(values.dumped[row.dumped], values, found.claim));
  for (const JudgedValue& value : found.values)
    if (value.subject.meaning != Meaning::weight)
      add_operands(id_of_operands(value.subject, found.claim.source_case.model.rows.get()),
                   reference.replay(), found.operands);
  std::set<std::string> same_everywhere, differ;
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    const Row& row = found.verdict.rows[i];
    const Subject& s = found.values[i].subject;
    if ((s.meaning != Meaning::checkpoint && s.meaning != Meaning::probs) || s.last) continue;
    (row.copies_differ || row.incomplete ? differ : same_everywhere).insert(s.id);
  }
  for (const std::string& id : differ) same_everywhere.erase(id);
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    const Row& row = found.verdict.rows[i];
    found.values[i].right = is_right(row, found.values[i].subject, found, same_everywhere);
    found.values[i].wrong = !row.follows && (row.fit == Fit::different || row.fit == Fit::unlikely);
  }
  for (const PassPlan& pass : reference.replay().passes()) {
    found.ids[pass.name] = reference.ids(pass.name);
    found.unknown[pass.name] = reference.unknown(pass.name);
  }
  found.wander = wander_of(found.claim, reference, runs);
  return found;
}

}  // namespace shardproof::dump
