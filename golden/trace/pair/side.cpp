#include "golden/trace/pair/side.h"

#include <algorithm>
#include <utility>

#include "golden/trace/pair/whole_value.h"
#include "golden/trace/verdict/notes.h"
#include "golden/trace/verdict/wrong_value.h"

namespace shardproof::dump {
namespace {

/// Returns the ids of a value's operands; none of one that is no checkpoint.
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

JudgedValue without_numbers(const DumpedValue& dumped, const Values& values, const Claim& claim) {
  JudgedValue value{dumped.name, dumped.subject, stored_format(dumped, claim), "", dumped.exact,
                    std::any_of(dumped.shards.begin(), dumped.shards.end(),
                                [](const auto& shard) { return !shard.empty(); })};
  for (const Values::Laid& laid : values.laid)
    if (value.layout.empty() && laid.subject.title() == dumped.subject.title())
      value.layout = laid.layout.to_string();
  return value;
}

}  // namespace

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
      add_operands(value.subject.id, reference.replay(), found.operands);
  for (const PassPlan& pass : reference.replay().passes()) {
    found.ids[pass.name] = reference.ids(pass.name);
    found.unknown[pass.name] = reference.unknown(pass.name);
  }
  found.wander = wander_of(found.claim, reference, runs);
  return found;
}

}  // namespace shardproof::dump
