#include "engine/run/detail/type_check.h"

#include <utility>

#include "engine/program/execute.h"

namespace shardproof {
namespace {

/// The finding with its step in the run, in the first layer: all layers are alike.
Finding in_run(Finding found, const Program& program, const std::string& pass) {
  const std::string value = found.step;
  found.pass = pass;
  found.step = value.empty() ? program.name : Scope{pass, "", 0}.step(program, value);
  // Programs without a file have no line to name, so the message names the step.
  if (!program.source.file.empty()) return found;
  const bool begins_with_name = !value.empty() && (found.message.starts_with(value + ":") ||
                                                   found.message.starts_with(value + " "));
  found.message =
      found.step + (begins_with_name ? found.message.substr(value.size()) : ": " + found.message);
  return found;
}

}  // namespace

std::set<TypeCheck::Fault>& TypeCheck::known_faults(const Program& program) {
  for (Known& known : known_)
    if (known.program == &program || *known.program == program) return known.faults;
  known_.push_back({&program, {}});
  return known_.back().faults;
}

ValueTypes TypeCheck::types(const Program& program, const std::string& pass, const Torus& torus,
                            const PassExtents& extents) {
  if (findings_.ended()) return {};
  Findings found(Findings::Until::all);
  ValueTypes types = check(program, model_, torus, extents, found);
  if (found.all().empty()) return types;
  std::set<Fault>& known = known_faults(program);
  // Two steps of one pass are two faults, even if they are written alike.
  std::set<Fault> now;
  for (const Finding& finding : found.all()) {
    Fault fault{finding.label, finding.where, finding.step, finding.op};
    if (!known.contains(fault) && !findings_.ended()) findings_.add(in_run(finding, program, pass));
    now.insert(std::move(fault));
  }
  known.merge(now);
  return types;
}

}  // namespace shardproof
