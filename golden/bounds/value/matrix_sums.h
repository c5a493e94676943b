#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/numeric/threads.h"
#include "golden/bounds/number/carried.h"

namespace shardproof::bounds {

/// One term of a contraction: rows of x [rows, width] times a matrix [width, columns], or a table
/// [columns, width].
struct MatrixTerm {
  const Carried* x = nullptr;
  const std::vector<float>* matrix = nullptr;
  std::size_t width = 0;
  bool table = false;
  /// Of each contracted index the chip whose partial sum its product belongs to; empty: all are
  /// one.
  std::vector<int> chip = {};
};

/// The sums of all terms of one element, chip by chip; of one element of one chip alone where the
/// terms are not cut.
using Sums = std::vector<Sum>;

/// Calls see(row, column, sums) for every row and every column, by these threads: columns in any
/// order. Row i is rows[i] of x. `chips`: how many partial sums there are.
void each_sum(const std::vector<MatrixTerm>& terms, const std::vector<std::size_t>& rows,
              std::size_t columns, int chips, Threads& threads,
              const std::function<void(std::size_t row, std::size_t column, const Sums&)>& see);

/// The sum of them all.
Sum total(const Sums& sums);

}  // namespace shardproof::bounds
