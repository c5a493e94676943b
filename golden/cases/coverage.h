#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/run/case.h"

namespace shardproof::cases {

/// Measures the coverage of a set of cases.
class Coverage {
 public:
  void add(const Case& c);

  /// Returns one aligned line for each requirement: its share and the least share required.
  std::string to_string() const;
  /// Returns the first requirement that does not hold, "" if all hold: at least 50 % with axes not
  /// all three equal, 30 % with 12 chips or more, 50 % with gen ≥ 3, 20 % with an axis of 3 or 5 or
  /// a larger odd number, 15 % with regime=f32 and 2 % with each schedule; acc, wire and cache of
  /// bf16 in their shares, every part of the model family in its share; half of the cases at most
  /// 5·10^6 multiply-adds; of kAllValues cases or more every value of every key
  /// (golden/cases/key_values.h); and as many cells of golden/cases/strata.h met as there are
  /// cases, or all of them if the cases are a round. Fewer than kLeastCases cases always pass,
  /// since their shares mean little.
  static constexpr std::int64_t kLeastCases = 100;
  static constexpr std::int64_t kAllValues = 500;
  std::string shortfall() const;
  /// Returns the values of keys that no case had.
  std::vector<std::string> missing_values() const;

 private:
  struct Requirement {
    std::string name;
    double share;  // of all cases, in percent
    double demand;
  };
  std::vector<Requirement> requirements() const;
  double median_multiply_adds() const;
  std::size_t wanted_cells() const;

  std::int64_t cases_ = 0;
  std::map<std::string, std::int64_t> counts_;
  std::map<std::string, std::int64_t> cells_;  // cells that were met
  std::map<std::string, std::int64_t> values_;
  std::vector<double> multiply_adds_;
};

}  // namespace shardproof::cases
