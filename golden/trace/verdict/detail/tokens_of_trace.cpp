#include "golden/trace/verdict/detail/tokens_of_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "golden/compare/reach_meter.h"
#include "golden/compare/row_padding.h"
#include "golden/judge/sampling_value.h"
#include "golden/trace/value/choice.h"
#include "golden/trace/value/detail/each_number.h"
#include "oracle/model/detail/sampling.h"
#include "weights/base/detail/index.h"

namespace shardproof::dump {

using bounds::IntervalTensor;

Row TokensOfTrace::ids(const DumpedValue& dumped, Row row) {
  const Subject& s = dumped.subject;
  const PassPlan& pass = reference_.replay().pass(s.pass);
  row.why = "an input";
  if (const auto bad = reference_.no_id(s.pass))
    row.why = fmt::format("{} is not a token id", *bad);
  if (pass.phase != Phase::decode && claim_.ids_are_given) {
    const IntTensor& given = reference_.case_ids(s.pass);
    Tensor expected(given.shape);
    std::copy(given.data.begin(), given.data.end(), expected.data.begin());
    row.why.clear();
    expectations_.hold(dumped, {.bits = &expected}, row);
    return row;
  }
  if (pass.phase != Phase::decode) return row;
  std::string why;
  const Tensor expected = before(pass, why);
  if (why.empty() || !reference_.no_id(s.pass)) row.why = why;
  if (row.why.empty()) expectations_.hold(dumped, {.bits = &expected}, row);
  return row;
}

/// Returns, for each row, the trace's token from the last preceding pass that sampled it; sets
/// `why` if one is missing.
Tensor TokensOfTrace::before(const PassPlan& pass, std::string& why) const {
  Tensor tokens(Shape{pass.batch(), pass.L});
  why.clear();
  for (const PassPlan& before : reference_.replay().passes()) {
    if (before.name == pass.name) break;
    if (!before.sample) continue;
    const auto found = tokens_.find(before.name);
    const RowsOfPass rows(before);
    for (std::size_t b = 0; b < rows.samples.size(); ++b)
      if (rows.samples[b] && found != tokens_.end()) tokens.data[b] = found->second.data[b];
    // A later pass that samples all rows makes earlier tokens irrelevant.
    const bool all =
        std::find(rows.samples.begin(), rows.samples.end(), false) == rows.samples.end();
    if (all) why.clear();
    if (found == tokens_.end())
      why = fmt::format("an input: the trace has no {}.token", before.name);
  }
  return tokens;
}

Row TokensOfTrace::chosen(const DumpedValue& dumped, Row row) {
  const Subject& s = dumped.subject;
  const std::size_t blocks = s.meaning == Meaning::token ? 1 : at(s.shape[1]);
  const IntervalTensor logits = reference_.sampled_logits(s.pass);
  const Choice choice(logits, blocks, at(s.block));
  row.fit = Fit::not_judged;
  row.why = kNoNumbers;
  each_number(dumped, [&](double v, const std::vector<int>& chips, std::int64_t place, double) {
    row.elements += std::ssize(chips);
    if (row.fit == Fit::not_judged) row.fit = Fit::within;
    row.why.clear();
    switch (choice.of(at(place), v)) {
      case ArgmaxFit::certain:
        return;
      case ArgmaxFit::ambiguous:  // several candidates: weak evidence
        row.fit = Fit::loose;
        return;
      case ArgmaxFit::impossible:
        break;
    }
    const auto best = static_cast<double>(choice.best(at(place)));
    row.add_wrong(chips, std::abs(v - best));
    const WrongElement e{chips[0], global_index(s.shape, place), best, best, v};
    if (!row.first) row.first = row.worst = e;
  });
  if (row.wrong > 0) row.fit = Fit::different;
  return row;
}

Row TokensOfTrace::drawn(const DumpedValue& dumped, Row row) {
  const Subject& s = dumped.subject;
  const Draws* const draws = reference_.draws(s.pass);
  const bool token = s.meaning == Meaning::token;
  if (draws == nullptr || (!token && !has_drawing(*draws, s.name))) {
    row.why = "the model has no such value";
    return row;
  }
  const std::string id = s.pass + ".logits";
  const IntervalTensor carried = reference_.sampled_logits(s.pass);
  Tensor logits(carried.shape);
  for (std::size_t i = 0; i < carried.size(); ++i) {
    logits.data[i] = static_cast<float>(carried.center[i]);
    if (carried.radius[i] == 0 && static_cast<double>(logits.data[i]) == carried.center[i])
      continue;
    row.why = fmt::format("random sampling is of f32 logits, and {}",
                          reference_.has(id) ? "the trace has others" : "the trace has none");
    return row;
  }
  Tensor expected(s.shape);
  if (token) {
    const IntTensor tokens = oracle::sampled(logits, *draws);
    std::copy(tokens.data.begin(), tokens.data.end(), expected.data.begin());
  } else {
    expected = drawing(s, logits, *draws);
  }
  expectations_.hold(dumped, {.bits = &expected}, row);
  return row;
}

void TokensOfTrace::keep(const DumpedValue& dumped) {
  const auto whole = assembled_value(dumped);
  if (!whole) return;
  Tensor& kept = tokens_[dumped.subject.pass] = Tensor(whole->shape);
  for (std::size_t i = 0; i < kept.data.size(); ++i)
    kept.data[i] = static_cast<float>(whole->center[i]);
}

}  // namespace shardproof::dump
