#include "golden/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>
#include <stdexcept>

#include "golden/comparison.h"
#include "golden/expected.h"
#include "weights/error.h"

namespace shardproof {
namespace {

/// What the oracle says the value is. A program may ask for what this run does not have.
Expected known_value(const oracle::Answer& answer, const Weights& weights, const Scope& scope,
                     const Program& program, const Result& declared, const Shape& shape) {
  try {
    return expected_value(answer, weights, scope, declared.meaning, shape);
  } catch (const std::out_of_range&) {
  } catch (const Error& error) {
    if (error.label() != "oracle_id") throw;
  }
  throw Error("judge_c1", fmt::format("{}{}: the model has no '{}' (docs/program.md)",
                                      program.where(declared.line), declared.name,
                                      declared.meaning.to_string()));
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

std::string Difference::to_string() const {
  return fmt::format("{}step {} = {}: {} on chip {} at [{}]: expected {}, got {}", where, step, op,
                     checkpoint, chip, fmt::join(index, ","), expected, actual);
}

std::string Judgement::explanation() const {
  if (difference) return difference->to_string();
  return detector.empty() ? reason : detector + ": " + reason;
}

Judge::Judge(const oracle::Answer& answer, const Weights& weights)
    : answer_(answer), weights_(weights) {}

void Judge::observe(const Scope& scope, const Program& program, const Op* op,
                    const Result& declared, const Sharded& value) {
  const Expected expected = known_value(answer_, weights_, scope, program, declared, value.shape());
  Difference found;
  found.pass = scope.pass;
  found.checkpoint = expected.id;
  found.step = scope.step(program, declared.name);
  found.op = op != nullptr ? op->to_string() : "input";
  found.where = program.where(declared.line);
  const auto stop = [&] {
    judgement_.verdict = Verdict::different;
    judgement_.difference = found;
    throw Stop{};
  };
  if (!fits(expected.shape, declared.layout, value.shape())) {
    found.expected = fmt::format("shape [{}]", fmt::join(expected.shape, ","));
    found.actual = fmt::format("shape [{}]", fmt::join(value.shape(), ","));
    stop();
  }
  const bool integer = value.holds_integers();
  if (value.holds_partial() != declared.layout.is_partial() || integer != expected.integer) {
    found.expected = declared.layout.to_string();
    found.actual = value.holds_partial() ? "partial sums" : integer ? "int32" : "complete f32";
    stop();
  }
  const Comparison comparison = compare(expected, declared.layout, value);
  judgement_.elements += comparison.elements;
  if (comparison.difference) {
    found.chip = comparison.difference->chip;
    found.index = comparison.difference->index;
    found.expected = comparison.difference->expected;
    found.actual = comparison.difference->actual;
    found.reach = comparison.difference->reach;
    stop();
  }
  if (element_count(value.shape()) > 0) ++judgement_.tensors;
  // Of final_norm the last rows are all that any program needs.
  const Meaning& m = declared.meaning;
  if (m.kind == Meaning::Kind::checkpoint && !value.holds_partial() &&
      (!m.last || m.name == "final_norm"))
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
      judgement_.verdict = Verdict::different;
      judgement_.difference = Difference{pass,
                                         at->first,
                                         "generated",
                                         "output",
                                         "(all)",
                                         {b, step},
                                         fmt::format("{}", want),
                                         fmt::format("{}", got)};
      return;
    }
    ++step;
  }
  if (step != gen) judgement_.reason = fmt::format("{} tokens generated, {} wanted", gen, step);
}

Judgement Judge::finish() const {
  Judgement result = judgement_;
  if (result.difference) return result;
  const auto missing = [&](const auto& checkpoints) {
    for (const auto& [id, tensor] : checkpoints)
      if (!met_.contains(id) && result.reason.empty())
        result.reason = fmt::format("the run never showed {}", id);
  };
  missing(answer_.checkpoints);
  missing(answer_.tokens);
  if (result.tensors == 0) result.reason = "nothing was compared";
  result.verdict = result.reason.empty() ? Verdict::equal : Verdict::not_judged;
  return result;
}

}  // namespace shardproof
