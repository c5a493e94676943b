#include "golden/judge/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "engine/numeric/larger.h"
#include "golden/compare/block_map.h"
#include "golden/judge/expected.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// Returns the oracle's value. Throws Error("judge_c1", ...) if this run has no such value.
template <class ExpectedOf>
Expected known_value(ExpectedOf&& expected_of, const Scope& scope, const Program& program,
                     const ValueDecl& declared, const Shape& shape) {
  try {
    return expected_of(scope, declared.role, shape);
  } catch (const std::out_of_range&) {
  } catch (const Error& error) {
    if (error.label() != "oracle_id") throw;
  }
  throw Error("judge_c1",
              fmt::format("{}{}: the model has no '{}' (docs/program.md)",
                          program.where(declared.line), declared.name, declared.role.to_string()));
}

/// Returns true if the actual shape is the expected one, or that with H split into S, R.
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

/// Returns the value whose partial maxima the chips hold: of each element the largest of its
/// group's.
Sharded largest_of_groups(const Layout& declared, const Sharded& value) {
  ChipArrays<float> most(value.f32().size());
  for (std::size_t chip = 0; chip < most.size(); ++chip) {
    Buffer<float>& own = most[chip];
    own = value.f32()[chip];
    for (const int other : judged_group(declared, value.torus(), static_cast<int>(chip)))
      for (std::size_t i = 0; i < own.size(); ++i)
        own[i] = larger(own[i], value.f32()[static_cast<std::size_t>(other)][i]);
  }
  return {value.torus(), value.layout().with_partial({}), value.shape(), std::move(most)};
}

}  // namespace

Judge::Judge(const oracle::Answer& answer, const Weights& weights, Findings& findings,
             DimPadding padding)
    : expected_([&, padding](const Scope& scope, const Role& role, const Shape& shape) {
        return expected_value(answer, weights, scope, role, shape, padding);
      }),
      padding_(std::move(padding)),
      floats_(&answer),
      findings_(findings) {
  for (const auto& [id, tensor] : answer.checkpoints) checkpoints_.push_back(id);
  for (const auto& [id, tokens] : answer.tokens) checkpoints_.push_back(id);
}

Judge::Judge(const oracle::field::Answer& answer, Findings& findings, DimPadding padding)
    : expected_([&, padding](const Scope& scope, const Role& role, const Shape& shape) {
        return expected_value(answer, scope, role, shape, padding);
      }),
      padding_(std::move(padding)),
      findings_(findings) {
  for (const auto& [id, tensor] : answer.checkpoints) checkpoints_.push_back(id);
}

void Judge::observe(const Scope& scope, const Program& program, const Op* op,
                    const ValueDecl& declared, const Sharded& value) {
  const Expected expected =
      as_placed(known_value(expected_, scope, program, declared, value.shape()), declared.role,
                whole_letters(declared.layout), padding_, scope.rows);
  const auto wrong = [&] {
    Finding found;
    found.pass = scope.pass;
    found.checkpoint = expected.id;
    found.step = scope.step(program, declared.name);
    found.op = op != nullptr ? op->to_string() : "input";
    found.where = program.where(declared.line);
    return found;
  };
  if (!fits(expected.shape, declared.layout, value.shape()) ||
      !judged_divides(declared.layout, value.shape(), value.torus())) {
    Finding found = wrong();
    found.expected = fmt::format("shape [{}]", fmt::join(expected.shape, ","));
    found.actual = fmt::format("shape [{}]", fmt::join(value.shape(), ","));
    return findings_.add(std::move(found));
  }
  const bool integer = value.is_integral();
  const bool by_max = declared.layout.is_partial_max() && value.layout() == declared.layout &&
                      std::holds_alternative<ChipArrays<float>>(value.data());
  const bool partial =
      by_max || (value.holds_field() ? value.layout().is_partial() : value.holds_partial());
  if (partial != declared.layout.is_partial() || integer != expected.integer) {
    Finding found = wrong();
    found.expected = declared.layout.to_string();
    found.actual = partial ? "partial sums" : integer ? "int32" : "complete f32";
    return findings_.add(std::move(found));
  }
  Threads& threads = threads_ != nullptr ? *threads_ : calling_thread();
  const Comparison comparison = by_max ? compare(expected, declared.layout.with_partial({}),
                                                 largest_of_groups(declared.layout, value), threads)
                                       : compare(expected, declared.layout, value, threads);
  judgement_.elements += comparison.elements;
  if (comparison.mismatch) return findings_.add(with_mismatch(wrong(), *comparison.mismatch));
  if (element_count(value.shape()) > 0) ++judgement_.tensors;
  const Role& m = declared.role;
  if (m.kind == Role::Kind::checkpoint && !partial &&
      (!m.last || value_row(m, scope.rows)->last_rows))
    met_.insert(expected.id);
}

void Judge::observe_generated(const IntTensor& generated) {
  if (floats_ == nullptr) return;
  const std::int64_t gen = generated.shape[1];
  std::vector<std::int64_t> steps(static_cast<std::size_t>(generated.shape[0]), 0);
  for (const std::string& pass : floats_->passes) {
    const auto at = floats_->tokens.find(pass + ".token");
    if (at == floats_->tokens.end()) continue;
    const std::vector<std::int32_t>& samples = floats_->samples.at(pass).data;
    for (std::size_t b = 0; b < steps.size(); ++b) {
      if (samples[b] == 0) continue;
      const std::int64_t step = steps[b]++;
      if (step >= gen) continue;
      const std::int32_t want = at->second.data[b];
      const std::int32_t got =
          generated.data[b * static_cast<std::size_t>(gen) + static_cast<std::size_t>(step)];
      if (want == got) continue;
      findings_.add({.pass = pass,
                     .step = "generated",
                     .op = "output",
                     .checkpoint = at->first,
                     .chip = "(all)",
                     .index = {static_cast<std::int64_t>(b), step},
                     .expected = fmt::format("{}", want),
                     .actual = fmt::format("{}", got)});
      return;
    }
  }
  for (const std::int64_t step : steps)
    if (step != gen && judgement_.missing.empty())
      judgement_.missing = fmt::format("{} tokens generated, {} expected", gen, step);
}

Judgement Judge::finish() const {
  Judgement result = judgement_;
  result.findings = findings_.all();
  result.verdict = verdict_of(result.findings, Verdict::equal);
  if (result.verdict != Verdict::equal) return result;
  for (const std::string& id : checkpoints_)
    if (!met_.contains(id) && result.missing.empty())
      result.missing = fmt::format("no complete value of the run is declared as {}", id);
  if (result.tensors == 0) result.missing = "nothing was compared";
  if (!result.missing.empty()) result.verdict = Verdict::not_judged;
  return result;
}

}  // namespace shardproof
