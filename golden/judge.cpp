#include "golden/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>
#include <stdexcept>

#include "golden/compare/block_map.h"
#include "golden/expected.h"
#include "weights/error.h"
#include "weights/registry.h"

namespace shardproof {
namespace {

/// What the oracle says the value is. A program may ask for what this run does not have.
Expected known_value(const oracle::Answer& answer, const Weights& weights, const Scope& scope,
                     const Program& program, const ValueDecl& declared, const Shape& shape) {
  try {
    return expected_value(answer, weights, scope, declared.role, shape);
  } catch (const std::out_of_range&) {
  } catch (const Error& error) {
    if (error.label() != "oracle_id") throw;
  }
  throw Error("judge_c1",
              fmt::format("{}{}: the model has no '{}' (docs/program.md)",
                          program.where(declared.line), declared.name, declared.role.to_string()));
}

/// The global shape that a declared layout can have: the checkpoint's, or that with H split in S,
/// R.
bool fits(const Shape& expected, const Layout& declared, const Shape& actual) {
  if (declared.rank() != actual.size()) return false;
  if (expected == actual) return true;
  const auto S = declared.find('S');
  const auto R = declared.find('R');
  if (!S || !R || *R != *S + 1) return false;
  Shape merged = actual;
  merged[*S] *= merged[*R];
  merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(*R));
  return merged == expected;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::equal:
      return "equal";
    case Verdict::different:
      return "different";
    case Verdict::not_judged:
      return "not judged";
    default:
      return "refused";
  }
}

std::ostream& operator<<(std::ostream& out, Verdict verdict) { return out << to_string(verdict); }

Finding with_mismatch(Finding found, const Mismatch& mismatch) {
  found.chip = mismatch.chip;
  found.index = mismatch.index;
  found.expected = mismatch.expected;
  found.actual = mismatch.actual;
  found.reach = mismatch.reach;
  return found;
}

Verdict verdict_of(const std::vector<Finding>& findings, Verdict otherwise) {
  if (findings.empty()) return otherwise;
  return findings[0].detector == Detector::run ? Verdict::refused : Verdict::different;
}

const Finding* Judgement::difference() const& {
  return !findings.empty() && findings[0].detector == Detector::values ? findings.data() : nullptr;
}

std::string Judgement::detector() const {
  if (findings.empty() || verdict != Verdict::different || difference() != nullptr) return "";
  return std::string(to_string(findings[0].detector));
}

std::string Judgement::reason() const {
  if (findings.empty()) return missing;
  return difference() != nullptr ? "" : findings[0].to_string();
}

std::string Judgement::explanation() const {
  if (difference() != nullptr) return difference()->to_string();
  return detector().empty() ? reason() : detector() + ": " + reason();
}

Judge::Judge(const oracle::Answer& answer, const Weights& weights, Findings& findings)
    : answer_(answer), weights_(weights), findings_(findings) {}

void Judge::observe(const Scope& scope, const Program& program, const Op* op,
                    const ValueDecl& declared, const Sharded& value) {
  const Expected expected = known_value(answer_, weights_, scope, program, declared, value.shape());
  Finding found;
  found.pass = scope.pass;
  found.checkpoint = expected.id;
  found.step = scope.step(program, declared.name);
  found.op = op != nullptr ? op->to_string() : "input";
  found.where = program.where(declared.line);
  if (!fits(expected.shape, declared.layout, value.shape()) ||
      !judged_divides(declared.layout, value.shape(), value.torus())) {
    found.expected = fmt::format("shape [{}]", fmt::join(expected.shape, ","));
    found.actual = fmt::format("shape [{}]", fmt::join(value.shape(), ","));
    return findings_.add(std::move(found));
  }
  const bool integer = value.holds_integers();
  if (value.holds_partial() != declared.layout.is_partial() || integer != expected.integer) {
    found.expected = declared.layout.to_string();
    found.actual = value.holds_partial() ? "partial sums" : integer ? "int32" : "complete f32";
    return findings_.add(std::move(found));
  }
  const Comparison comparison = compare(expected, declared.layout, value);
  judgement_.elements += comparison.elements;
  if (comparison.mismatch)
    return findings_.add(with_mismatch(std::move(found), *comparison.mismatch));
  if (element_count(value.shape()) > 0) ++judgement_.tensors;
  const Role& m = declared.role;
  if (m.kind == Role::Kind::checkpoint && !value.holds_partial() &&
      (!m.last || value_row(m)->last_rows))
    met_.insert(expected.id);
}

void Judge::observe_generated(const IntTensor& generated) {
  const std::int64_t gen = generated.shape[1];
  std::int64_t step = 0;
  for (const std::string& pass : answer_.passes) {
    const auto at = answer_.tokens.find(pass + ".token");
    if (at == answer_.tokens.end()) continue;
    for (std::int64_t b = 0; step < gen && b < generated.shape[0]; ++b) {
      const std::int32_t want = at->second.data[static_cast<std::size_t>(b)];
      const std::int32_t got = generated.data[static_cast<std::size_t>(b * gen + step)];
      if (want == got) continue;
      findings_.add({.pass = pass,
                     .step = "generated",
                     .op = "output",
                     .checkpoint = at->first,
                     .chip = "(all)",
                     .index = {b, step},
                     .expected = fmt::format("{}", want),
                     .actual = fmt::format("{}", got)});
      return;
    }
    ++step;
  }
  if (step != gen) judgement_.missing = fmt::format("{} tokens generated, {} expected", gen, step);
}

Judgement Judge::finish() const {
  Judgement result = judgement_;
  result.findings = findings_.all();
  result.verdict = verdict_of(result.findings, Verdict::equal);
  if (result.verdict != Verdict::equal) return result;
  const auto require_met = [&](const auto& checkpoints) {
    for (const auto& [id, tensor] : checkpoints)
      if (!met_.contains(id) && result.missing.empty())
        result.missing = fmt::format("no complete value of the run is declared as {}", id);
  };
  require_met(answer_.checkpoints);
  require_met(answer_.tokens);
  if (result.tensors == 0) result.missing = "nothing was compared";
  if (!result.missing.empty()) result.verdict = Verdict::not_judged;
  return result;
}

}  // namespace shardproof
