#include "golden/trace/pair/pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "golden/trace/pair/differences.h"
#include "golden/trace/pair/value_pairing.h"
#include "weights/text/text_model.h"

namespace shardproof::dump {

std::string_view to_string(Likeness likeness) {
  switch (likeness) {
    case Likeness::same:
      return "the same bits";
    case Likeness::rounding:
      return "apart by rounding";
    case Likeness::a_wrong:
      return "A is wrong";
    case Likeness::b_wrong:
      return "B is wrong";
    case Likeness::both_wrong:
      return "both are wrong";
    case Likeness::not_the_same:
      return "not the same";
    case Likeness::operands:
      return "operands differ";
    case Likeness::not_judged:
      break;
  }
  return "not judged";
}

bool is_wrong(Likeness likeness) {
  return likeness == Likeness::a_wrong || likeness == Likeness::b_wrong ||
         likeness == Likeness::both_wrong || likeness == Likeness::not_the_same;
}

const Row* Pair::wrong(bool of_b) const {
  const std::optional<std::size_t>& number = of_b ? first_b : first_a;
  if (!number) return nullptr;
  const PairRow& row = rows[*number];
  const JudgedTrace& trace = of_b ? b : a;
  std::vector<std::size_t> all{of_b ? *row.b : *row.a};
  if (row.turned != of_b) all.insert(all.end(), row.more.begin(), row.more.end());
  for (const std::size_t i : all)
    if (trace.values[i].wrong) return &trace.verdict.rows[i];
  return nullptr;
}

std::optional<std::size_t> Pair::first_open() const {
  const auto open = std::find_if(rows.begin(), rows.end(), [](const PairRow& row) {
    return row.paired() &&
           (row.likeness == Likeness::operands || row.likeness == Likeness::not_judged);
  });
  return open == rows.end() ? std::nullopt : std::optional<std::size_t>(open - rows.begin());
}

std::int64_t Pair::count(Likeness likeness) const {
  return std::count_if(rows.begin(), rows.end(), [&](const PairRow& row) {
    return row.likeness == likeness && (row.paired() || is_wrong(likeness));
  });
}

bool Pair::proves() const {
  return std::any_of(rows.begin(), rows.end(), [&](const PairRow& row) {
    if (!row.paired() || row.input) return false;
    const Row &in_a = a.verdict.rows[*row.a], &in_b = b.verdict.rows[*row.b];
    return (row.likeness == Likeness::same || row.likeness == Likeness::rounding) &&
           in_a.fit <= Fit::near && in_b.fit <= Fit::near && !in_a.evidence && !in_b.evidence &&
           !in_a.incomplete && !in_b.incomplete;
  });
}

int Pair::exit_code() const {
  const bool all = std::all_of(rows.begin(), rows.end(), [](const PairRow& row) {
    return row.likeness == Likeness::same || row.likeness == Likeness::rounding ||
           (!row.paired() && row.likeness == Likeness::not_judged);
  });
  return all && proves() && a.verdict.misfits == 0 && b.verdict.misfits == 0 ? 0 : 1;
}

void require_pair(const Claim& a, const Claim& b) {
  if (a.in_field || b.in_field)
    throw Error("compare_pair",
                "numbers of the field regime have no distances: compare each trace alone, or their "
                "bits with --model none");
  ModelConfig of_b = b.source_case.model;
  of_b.cache = a.source_case.model.cache;  // how caches are stored, not what the model is
  if (!same_model(a.source_case.model, of_b))
    throw Error("compare_pair",
                fmt::format("A is of model {}, B of {}: two traces of one model "
                            "are compared",
                            print_model(a.source_case.model), print_model(b.source_case.model)));
}

Pair compare_pair(ClaimedTrace a, ClaimedTrace b, const PairRequest& request) {
  require_pair(a.claim, b.claim);
  Pair pair;
  pair.same = request.same;
  pair.a = judged_trace(a.dump, std::move(a.claim), std::move(a.weights), request.runs);
  pair.b = judged_trace(b.dump, std::move(b.claim), std::move(b.weights), request.runs);
  pair.differences = differences_of(pair.a, pair.b, !request.same);
  pair_values(pair, a.dump, b.dump);
  return pair;
}

}  // namespace shardproof::dump
