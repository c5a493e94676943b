#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/numeric/threads.h"
#include "golden/bounds/number/interval_tensor.h"
#include "golden/bounds/number/lanes.h"

namespace shardproof::bounds {

/// One term of a contraction: rows of x [rows, width] times a matrix [width, columns], or times a
/// table [columns, width].
struct MatrixTerm {
  const IntervalTensor* x = nullptr;
  const std::vector<float>* matrix = nullptr;
  std::size_t width = 0;
  bool table = false;
  /// chip[k]: chip whose partial sum includes the product of index k; empty: all on chip 0.
  std::vector<int> chip = {};
};

/// The sums of one element, one per chip; a single one if the terms are not cut.
using Sums = std::vector<Sum>;

/// What bounds need of sums: their range (T6), and the value to twice f64's digits, without which
/// f64 sums cannot be judged. Otherwise it has f64's own error (T8).
struct SumsNeeded {
  bool range = true;
  bool twice = true;

  static SumsNeeded of(const DeclaredArithmetic& declared) {
    return {declared.order != Order::any, declared.sums == NumberFormat::f64};
  }
};

/// The most columns of one call of SeeSums.
inline constexpr std::size_t kSumsSeen = kLanes;

/// Gets the sums of a row's neighbouring columns, which begin with `column`.
using SeeSums =
    std::function<void(std::size_t row, std::size_t column, std::span<const Sums> of_columns)>;

/// Calls see(row, column, sums) once for every row and column, on `threads`, with the columns in
/// any order. Row i is rows[i] of x. `chips` is the number of partial sums. Memory beside the
/// operands is a few megabytes per thread.
void each_sum(const std::vector<MatrixTerm>& terms, const std::vector<std::size_t>& rows,
              std::size_t columns, int chips, SumsNeeded needed, Threads& threads,
              const SeeSums& see);

/// Adds up sums, to twice f64's digits.
class Total {
 public:
  void add(const Sum& sum);
  Sum sum() const;

 private:
  Sum all_;
  double low_ = 0.0;
};
Sum total(const Sums& sums);

}  // namespace shardproof::bounds
