#include "golden/faults/matrix.h"

#include <mutex>

#include "engine/numeric/threads.h"

namespace shardproof::faults {

void Count::add(const Result& result) {
  ++mutants;
  if (result.sights.killed())
    ++killed;
  else
    ++(result.reason.empty() ? survivors : equivalent);
  for (std::size_t i = 0; i < kDetectors; ++i) {
    if (result.sights.own[i] != Sight::not_run) ++run[i];
    if (result.sights.own[i] == Sight::seen) ++own[i];
  }
  for (std::size_t i = 0; i < kOtherChecks; ++i) {
    if (result.sights.others.end_to_end[i]) ++end_to_end[i];
    if (result.sights.others.per_value[i]) ++per_value[i];
  }
}

Matrix matrix_of(const Study& study, const std::vector<Result>& results) {
  Matrix matrix;
  for (const Result& one : results) {
    const std::string of_class(one.planned.mutant.how->fault_class);
    const std::string& strategy = study.cases[one.planned.of_case].strategy;
    matrix.all.add(one);
    matrix.by_class[of_class].add(one);
    matrix.by_strategy[strategy].add(one);
    matrix.by_operator[std::string(one.planned.mutant.how->name)].add(one);
    matrix.by_both[{of_class, strategy}].add(one);
    if (!one.sights.killed() && !one.reason.empty()) ++matrix.by_reason[one.reason];
  }
  return matrix;
}

void add_false_alarms(Matrix& matrix, const Study& study, OracleMemo& memo, int threads) {
  std::vector<Case> right;
  for (const FaultCase& one : study.cases)
    if (one.kind == "plain")
      for (const std::uint64_t seed : {7U, 8U, 9U}) {
        right.push_back(one.source_case);
        right.back().seed = seed;
      }
  std::mutex mutex;
  Threads pool(threads);
  pool.for_each(std::ssize(right), [&](std::int64_t i) {
    const FalseAlarms alarms = false_alarms(right[static_cast<std::size_t>(i)], memo);
    const std::lock_guard lock(mutex);
    ++matrix.right_runs;
    if (alarms.bounds) ++matrix.bounds_alarms;
    for (std::size_t c = 0; c < kOtherChecks; ++c) {
      if (alarms.others.end_to_end[c]) ++matrix.end_to_end_alarms[c];
      if (alarms.others.per_value[c]) ++matrix.per_value_alarms[c];
    }
  });
}

}  // namespace shardproof::faults
