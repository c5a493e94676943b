#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "golden/rerun/arithmetic.h"
#include "golden/rerun/draw.h"

namespace shardproof::rerun {

/// In which order the n terms of a sum are added up, drawn.
struct Order {
  Order(std::size_t n, Draw draw);

  /// 0 … n−1 as they come, as most programs take them, or in a random permutation.
  std::vector<std::uint32_t> terms;
  /// So many of which in a row have a sum of their own: n, n/2, n/4, … or 1.
  std::size_t block = 1;
  bool pairs = false;  ///< these sums pair up, level by level; else one after the other
  bool fused = false;  ///< a product is not rounded
};

/// What the sums of a contraction are rounded to: no more than the additions are, unless it is
/// said.
struct Sums {
  Kept kept = Kept::f64;   ///< each addition
  int wire_roundings = 0;  ///< of what is added up so far, at as many places
  Kept wire = Kept::bf16;
};

/// Adds up sums, `columns` side by side. Real is float or double, which additions and products are
/// of.
template <class Real>
class Adder {
 public:
  /// out[c] = Σ factor(k)·row(k)[c] over the order's terms k; +0 of none.
  template <class Factor, class Row>
  void add_up(const Order& order, const Sums& sums, std::size_t columns, Factor&& factor, Row&& row,
              Real* out) {
    const std::size_t n = order.terms.size();
    // The parts between which the sum so far is on its way.
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
          if (sums.kept != Kept::f64) round(block, columns, sums.kept);
        }
        close(columns, order.pairs, sums.kept);
      }
      while (levels_.size() > 1) merge(columns, sums.kept);
      for (std::size_t c = 0; c < columns; ++c) out[c] = begin == 0 ? open_[c] : out[c] + open_[c];
      if (sums.kept != Kept::f64) round(out, columns, sums.kept);
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
  static void round(Real* sum, std::size_t columns, Kept kept) {
    for (std::size_t c = 0; c < columns; ++c) sum[c] = rounded(sum[c], kept);
  }
  /// The next block's sums, 0 so far, on top of those that wait.
  Real* open(std::size_t columns) {
    const std::size_t first = levels_.size() * columns;
    if (open_.size() < first + columns) open_.resize(first + columns);
    levels_.push_back(0);
    Real* const sum = open_.data() + first;
    for (std::size_t c = 0; c < columns; ++c) sum[c] = Real{0};
    return sum;
  }
  /// In pairs: those of one level; else the block is added to what there is.
  void close(std::size_t columns, bool pairs, Kept kept) {
    while (levels_.size() > 1 && (!pairs || levels_.back() == levels_[levels_.size() - 2]))
      merge(columns, kept);
  }
  void merge(std::size_t columns, Kept kept) {
    Real* const to = open_.data() + (levels_.size() - 2) * columns;
    for (std::size_t c = 0; c < columns; ++c) to[c] += to[columns + c];
    if (kept != Kept::f64) round(to, columns, kept);
    levels_.pop_back();
    ++levels_.back();
  }

  std::vector<Real> open_;   // sums of blocks
  std::vector<int> levels_;  // how often each of them was paired
};

}  // namespace shardproof::rerun
