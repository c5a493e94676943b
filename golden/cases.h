#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "golden/case.h"

namespace shardproof::cases {

/// The cases `verify` runs without arguments: every strategy, for prefill and decode alike, ×
/// multihead and multiquery × the tori 1x1x1, 2x2x2, 4x2x3, 3x2x2, 2x3x1, 1x4x2; every pair of
/// different strategies on 4x2x3; 4x4x4 once; every strategy with regime=f32 under each schedule,
/// on plain, whole-family serial and bf16 models;
/// serial blocks on the same tori, and layernorm, the gelus, biases, interleaved and no rotation
/// and untied tables in every strategy.
std::vector<Case> standard_matrix();

/// Random case number `index` of the stream `seed`: a function of the two alone. Always legal, at
/// most kMostMultiplyAdds, half of them at most about a quarter of that.
Case draw(std::uint64_t seed, std::uint64_t index);
inline constexpr double kMostMultiplyAdds = 2e7;

/// Legal cases that are simpler than `c` in one respect each, the boldest steps first; none for the
/// simplest case. Repeating it ends.
std::vector<Case> simpler(const Case& c);

/// The simplest case reached from `c` by such steps that still fails; at most `tries` are tried.
Case shrink(Case c, const std::function<bool(const Case&)>& fails, int tries = 300);

/// What a set of cases covered.
class Coverage {
 public:
  void add(const Case& c);

  /// One aligned line a requirement: share and demand.
  std::string to_string() const;
  /// Whether the draw was lazy: at least 60 % with axes not all three equal, 30 % with 12 chips or
  /// more, 50 % with gen ≥ 3, 20 % with an axis of 3 or 5 or a larger odd number, 15 % with
  /// regime=f32 and 2 % with each schedule, every strategy in at least 3 %, every part of the model
  /// family in its share; and half of the cases at most 5·10^6 multiply-adds. Empty if all hold,
  /// else the first that does not. Of fewer than kLeastCases, shares say nothing: then nothing is
  /// demanded.
  static constexpr std::int64_t kLeastCases = 100;
  std::string shortfall() const;

 private:
  struct Requirement {
    std::string name;
    double share;  // of all cases, in percent
    double demand;
  };
  std::vector<Requirement> requirements() const;
  double median_multiply_adds() const;

  std::int64_t cases_ = 0;
  std::map<std::string, std::int64_t> counts_;
  std::vector<double> multiply_adds_;
};

}  // namespace shardproof::cases
