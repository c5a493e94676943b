#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "golden/faults/study.h"

namespace shardproof::faults {

/// How many of some mutants were seen, by each detector and by each check of others.
struct Count {
  std::int64_t mutants = 0;
  std::int64_t killed = 0;      ///< by some detector
  std::int64_t equivalent = 0;  ///< seen by none, for a structural reason
  std::int64_t survivors = 0;   ///< seen by none, without a reason
  std::array<std::int64_t, kDetectors> own{};
  std::array<std::int64_t, kDetectors> run{};  ///< of them, those that the detector ran on
  OtherCounts end_to_end{}, per_value{};

  void add(const Result& result);
};

/// The kill matrix: by class, by strategy, by both and by operator; and of right runs in bf16 how
/// many the checks of others were alarmed by.
struct Matrix {
  Count all;
  std::map<std::string, Count> by_class, by_strategy, by_operator;
  std::map<std::pair<std::string, std::string>, Count> by_both;  ///< class and strategy
  std::map<std::string, std::int64_t> by_reason;
  std::int64_t right_runs = 0;
  std::int64_t bounds_alarms = 0;
  OtherCounts end_to_end_alarms{}, per_value_alarms{};
};

Matrix matrix_of(const Study& study, const std::vector<Result>& results);
/// Adds the false alarms on right bf16 runs: each strategy's plain case, with three seeds.
void add_false_alarms(Matrix& matrix, const Study& study, OracleMemo& memo, int threads);

}  // namespace shardproof::faults
