#include "golden/verify/scalar_judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "golden/compare/block_map.h"
#include "golden/compare/row_padding.h"

namespace shardproof {
namespace {

/// Returns a value of the scalar model, which must outlive the result, part after part.
ExpectedBits bits_of(const scalar::Value& value) {
  return {.shape = value.shape,
          .bits = value.integer() ? Words<std::uint32_t>::of(value.ints)
                                  : Words<std::uint32_t>::of_parts(value.parts),
          .integer = value.integer()};
}

}  // namespace

ScalarJudge::ScalarJudge(const RunPlan& plan, const Weights& weights, const IntTensor& prompt,
                         const oracle::Answer& exact, Findings& findings)
    : model_(plan, weights, prompt), meter_(exact), findings_(findings) {}

void ScalarJudge::next_pass() {
  for (const auto& [key, made] : model_.values())
    if (!met_.contains(key) && judgement_.missing.empty())
      judgement_.missing =
          fmt::format("no value of the run was compared with {} of {}", key, model_.pass());
  met_.clear();
  if (model_.next_pass()) meter_.measure(model_);
}

void ScalarJudge::observe(const Scope& scope, const Program& program, const Op* op,
                          const ValueDecl& declared, const Sharded& value) {
  if (scope.pass != model_.pass()) next_pass();
  const std::string key = ScalarModel::key(program, scope.layer, declared.name);
  Finding found;
  found.pass = scope.pass;
  found.step = scope.step(program, declared.name);
  found.where = program.where(declared.line);
  found.checkpoint = "the scalar model's " + declared.role.to_string();
  found.op = op != nullptr ? op->to_string() : "input";
  const auto at = model_.values().find(key);
  if (scope.pass != model_.pass() || at == model_.values().end()) {
    found.expected = "no such value in " + model_.pass();
    found.actual = "a value";
    return findings_.add(std::move(found));
  }
  const scalar::Value& wanted = *at->second.value;
  const auto* ints = std::get_if<ChipArrays<std::int32_t>>(&value.data());
  const auto* floats = std::get_if<ChipArrays<float>>(&value.data());
  if (value.shape() != wanted.shape ||
      !judged_divides(declared.layout, value.shape(), value.torus()) ||
      (wanted.integer() ? ints == nullptr : floats == nullptr)) {
    found.expected = fmt::format("{} of shape [{}]", wanted.integer() ? "int32" : "f32",
                                 fmt::join(wanted.shape, ","));
    found.actual = fmt::format("{} of shape [{}]",
                               ints != nullptr     ? "int32"
                               : floats != nullptr ? "f32"
                                                   : "exact sums",
                               fmt::join(value.shape(), ","));
    return findings_.add(std::move(found));
  }
  ExpectedBits expected = bits_of(wanted);
  expected.padding =
      row_padding(declared.role, expected.shape, RowsOfPass(model_.plan_of_pass()), scope.rows);
  const Comparison comparison =
      compare(expected, declared.layout, value, threads_ != nullptr ? *threads_ : calling_thread());
  if (comparison.mismatch)
    return findings_.add(with_mismatch(std::move(found), *comparison.mismatch));
  judgement_.elements += comparison.elements;
  if (element_count(value.shape()) > 0) ++judgement_.tensors;
  met_.insert(key);
}

void ScalarJudge::observe_generated(const IntTensor& generated) {
  const std::int64_t gen = generated.shape[1];
  for (std::size_t b = 0; b < model_.tokens().size(); ++b) {
    const std::vector<std::int32_t>& wanted = model_.tokens()[b];
    if (std::ssize(wanted) != gen) {
      judgement_.missing = fmt::format("{} tokens generated, {} expected", gen, wanted.size());
      return;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::int32_t got = generated.data[b * wanted.size() + i];
      if (got == wanted[i]) continue;
      findings_.add({.pass = model_.pass(),
                     .step = "generated",
                     .op = "output",
                     .checkpoint = "the scalar model's token",
                     .chip = "(all)",
                     .index = {static_cast<std::int64_t>(b), static_cast<std::int64_t>(i)},
                     .expected = fmt::format("{}", wanted[i]),
                     .actual = fmt::format("{}", got)});
      return;
    }
  }
}

Judgement ScalarJudge::finish() {
  judgement_.findings = findings_.all();
  judgement_.verdict = verdict_of(judgement_.findings, Verdict::equal);
  if (judgement_.verdict == Verdict::equal) {
    next_pass();  // checks the last one; there must be none left
    if (!model_.values().empty())
      judgement_.missing = fmt::format("the run ended before {}", model_.pass());
    if (judgement_.tensors == 0) judgement_.missing = "nothing was compared";
    if (!judgement_.missing.empty()) judgement_.verdict = Verdict::not_judged;
  }
  judgement_.drift = meter_.drift();
  return judgement_;
}

}  // namespace shardproof
