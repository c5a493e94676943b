#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "golden/rerun/arithmetic.h"
#include "golden/rerun/draw.h"

namespace shardproof::rerun {

/// A randomly drawn order for adding n terms.
struct Order {
  Order(std::size_t n, Draw draw);

  /// 0 … n−1 in sequence, as in most programs, or in a random permutation.
  std::vector<std::uint32_t> terms;
  /// The number of consecutive terms that form a block with its own sum: n, n/2, n/4, … or 1.
  std::size_t block = 1;
  bool pairs = false;  ///< blocks are added pairwise, level by level; otherwise in sequence
  bool fused = false;  ///< products are not rounded (fma)
};

/// How the sums of a contraction round; by default only as the additions themselves do.
struct Sums {
  NumberFormat kept = NumberFormat::f64;  ///< format of each addition
  int wire_roundings = 0;                 ///< how often the running sum is rounded to `wire`
  NumberFormat wire = NumberFormat::bf16;
};

/// Computes `columns` sums together. Real, float or double, is the type of additions and products.
template <class Real>
class Adder {
 public:
  /// out[c] = Σ factor(k)·row(k)[c] over the order's terms k; +0 if there are none.
  template <class Factor, class Row>
  void add_up(const Order& order, const Sums& sums, std::size_t columns, Factor&& factor, Row&& row,
              Real* out) {
    const std::size_t n = order.terms.size();
    // The running sum is sent, and rounded, between parts.
    const std::size_t parts = static_cast<std::size_t>(sums.wire_roundings) + 1;
    for (std::size_t c = 0; c < columns; ++c) out[c] = Real{0};
    for (std::size_t part = 0, begin = 0; part < parts; ++part) {
      const std::size_t end = n * (part + 1) / parts;
      if (end == begin) continue;
      if (begin > 0)
        for (std::size_t c = 0; c < columns; ++c) out[c] = rounded(out[c], sums.wire);
      for (std::size_t b = begin; b < end; b += order.block) {
        Real* const block = open(columns);
        for (std::size_t i = b; i < end && i < b + order.block; ++i) {
          const std::size_t k = order.terms[i];
          add_term(block, factor(k), row(k), columns, order.fused);
          if (sums.kept != NumberFormat::f64) round(block, columns, sums.kept);
        }
        close(columns, order.pairs, sums.kept);
      }
      while (levels_.size() > 1) merge(columns, sums.kept);
      for (std::size_t c = 0; c < columns; ++c) out[c] = begin == 0 ? open_[c] : out[c] + open_[c];
      if (sums.kept != NumberFormat::f64) round(out, columns, sums.kept);
      levels_.clear();
      begin = end;
    }
  }

 private:
  static void add_term(Real* sum, Real factor, const Real* row, std::size_t columns, bool fused) {
    if (fused)
      for (std::size_t c = 0; c < columns; ++c) sum[c] = std::fma(factor, row[c], sum[c]);
    else
      for (std::size_t c = 0; c < columns; ++c) sum[c] += factor * row[c];
  }
  static void round(Real* sum, std::size_t columns, NumberFormat kept) {
    for (std::size_t c = 0; c < columns; ++c) sum[c] = rounded(sum[c], kept);
  }
  /// Pushes the next block's sums, initially 0, onto the stack of unmerged ones.
  Real* open(std::size_t columns) {
    const std::size_t first = levels_.size() * columns;
    if (open_.size() < first + columns) open_.resize(first + columns);
    levels_.push_back(0);
    Real* const sum = open_.data() + first;
    for (std::size_t c = 0; c < columns; ++c) sum[c] = Real{0};
    return sum;
  }
  /// With `pairs` merges sums of equal level; otherwise adds the block to the running sum.
  void close(std::size_t columns, bool pairs, NumberFormat kept) {
    while (levels_.size() > 1 && (!pairs || levels_.back() == levels_[levels_.size() - 2]))
      merge(columns, kept);
  }
  void merge(std::size_t columns, NumberFormat kept) {
    Real* const to = open_.data() + (levels_.size() - 2) * columns;
    for (std::size_t c = 0; c < columns; ++c) to[c] += to[columns + c];
    if (kept != NumberFormat::f64) round(to, columns, kept);
    levels_.pop_back();
    ++levels_.back();
  }

  std::vector<Real> open_;   // sums of blocks
  std::vector<int> levels_;  // level of each in the pairwise tree
};

}  // namespace shardproof::rerun
