#include "tools/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/run/case_weights.h"
#include "golden/corpus/golden.h"
#include "golden/corpus/golden_comparison.h"
#include "golden/corpus/model.h"
#include "golden/trace/claim/memory.h"
#include "golden/trace/verdict/field_verdict.h"
#include "golden/trace/verdict/notes.h"
#include "golden/trace/verdict/wrong_value.h"
#include "oracle/request/storage.h"
#include "weights/storage/store.h"
#include "weights/text/text_model.h"

namespace shardproof::tools {
namespace {

/// Returns these weights as stored for the run.
Weights given_weights(const Weights& given, const std::string& name, const Case& c) {
  ModelConfig model = given.config();
  model.cache = c.model.cache;  // not part of the weights
  if (!same_model(model, c.model))
    throw Error("weights_model", fmt::format("{} is of model {}, the trace of {}", name,
                                             print_model(given.config()), print_model(c.model)));
  return oracle::as_stored(given.with_config(c.model), c.numerics.weights);
}

std::vector<Operand> operands_of(const dump::Verdict& verdict, dump::Reference& reference,
                                 const dump::Values& values) {
  std::vector<Operand> operands;
  const dump::Row& first = verdict.rows[*verdict.first];
  const dump::Subject& subject = values.dumped[first.dumped].subject;
  if (subject.meaning != dump::Meaning::checkpoint && subject.meaning != dump::Meaning::raw)
    return operands;
  for (const std::string& id : reference.replay().operands(subject.id)) {
    Operand operand{id, std::nullopt};
    for (const dump::Row& row : verdict.rows)
      if (const dump::Subject& s = values.dumped[row.dumped].subject;
          s.id == id && s.meaning == dump::Meaning::checkpoint)
        operand.fit = row.fit;
    operands.push_back(std::move(operand));
  }
  return operands;
}

void judge(Comparison& found, const dump::Dump& dump, const Weights& weights) {
  found.values = dump::read_values(dump, found.claim, weights);
  dump::Reference reference(found.values, found.claim, weights);
  found.verdict = dump::judge(found.values, found.claim, reference);
  found.notes = dump::notes_of(found.values, found.claim, reference, found.verdict);
  if (found.verdict.first) found.operands = operands_of(found.verdict, reference, found.values);
  found.diagnosis = dump::diagnosed(found.verdict, found.values, found.claim, reference);
}

void judge_by_case(Comparison& found, const dump::Dump& dump, const Weights* weights) {
  found.claim = dump::read_claim(dump.attributes, found.request.line,
                                 found.request.text ? &*found.request.text : nullptr);
  found.claim.operands.insert(found.claim.operands.end(), found.request.given.begin(),
                              found.request.given.end());
  dump::require_memory(found.claim.source_case);
  if (found.claim.in_field)
    found.verdict = dump::judge_in_field(dump, found.claim, found.values);
  else
    judge(found, dump, weights_of(found.request, weights, found.claim));
  found.of = print_case(found.claim.source_case);
}

/// Judges by a golden's case, weights and ids. Throws unless its values are the unsharded model's.
void judge_by_model(Comparison& found, const dump::Dump& dump, const dump::Dump& golden) {
  const dump::Dump made = corpus::expected_model(golden, corpus::By::model);
  if (const auto fault = corpus::first_difference(made, golden))
    throw Error("golden_value", fmt::format("{} is damaged: {}", found.request.golden, *fault));
  const Case given = corpus::case_of(golden);
  const bool own_case = dump.attributes.contains("case");
  found.claim = dump::read_claim(
      dump.attributes, own_case ? std::nullopt : std::optional<std::string>(print_case(given)));
  dump::require_same_values(given, found.claim.source_case);
  found.claim.ids_are_given = true;
  judge(found, dump, corpus::golden_weights(golden));
}

void judge_by_golden(Comparison& found, const dump::Dump& dump) {
  const dump::Dump golden = dump::read_dump(found.request.golden);
  found.of = corpus::line_of(golden);
  if (corpus::kind_of(golden) == corpus::Kind::model) {
    judge_by_model(found, dump, golden);
    return;
  }
  corpus::GoldenComparison against = corpus::judge_against(golden, dump);
  found.claim.exact = true;
  found.values = std::move(against.values);
  found.verdict = std::move(against.verdict);
  found.diagnosis = std::move(against.diagnosis);
}

}  // namespace

Weights weights_of(const ComparisonRequest& request, const Weights* given,
                   const dump::Claim& claim) {
  const Case& c = claim.source_case;
  if (given != nullptr) return given_weights(*given, "the given weights", c);
  if (!request.weights_file.empty())
    return given_weights(load_weights(request.weights_file), request.weights_file, c);
  if (claim.weights_of_file)
    throw Error(
        "compare_weights",
        fmt::format("{} was made with a weights file; name it: --weights FILE", request.file));
  return oracle::as_stored(generated_weights(c), c.numerics.weights);
}

const dump::Row* Comparison::first() const {
  return verdict.first ? &verdict.rows[*verdict.first] : nullptr;
}

Comparison compare(const dump::Dump& dump, ComparisonRequest request, const Weights* weights) {
  Comparison found;
  found.request = std::move(request);
  found.declarations = dump.attributes;
  if (found.request.golden.empty())
    judge_by_case(found, dump, weights);
  else
    judge_by_golden(found, dump);
  dump::require_unchanged(dump);
  return found;
}

std::int64_t count_given(const Comparison& of) {
  return std::count_if(of.verdict.rows.begin(), of.verdict.rows.end(), [&](const dump::Row& row) {
    return row.fit == bounds::Fit::not_judged && of.dumped(row).given;
  });
}

}  // namespace shardproof::tools
