#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "oracle/numeric/limb_product.h"
#include "oracle/numeric/vectors.h"

namespace shardproof::oracle {

/// How the integers of a product are cut into limbs: signed digits in base 2^width, of magnitude at
/// most half of that. Up to `block` products of two limbs sum to at most 2^53, so f64 holds every
/// partial sum, in any order.
struct Limbs {
  int row_width = 1, column_width = 1;
  std::size_t block = 1;  ///< a power of two; longer sums are split by blocks
};

/// Returns the number of limbs that hold signed integers of this many bits.
inline int limb_count(int bits, int width) { return bits / width + 1; }

/// Returns the cheapest cut for these rows and columns, ignoring vectors whose scales do not fit.
Limbs choose_limbs(const Vectors& rows, const Vectors& columns);

/// The limbs of rows, each limb a line of doubles, in groups of kTileRows as add_tile reads them.
class PackedRows {
 public:
  /// Packs the rows [begin, end). A row whose scale does not fit has one line of zeros.
  PackedRows(const Vectors& rows, std::size_t begin, std::size_t end, const Limbs& limbs);

  std::size_t begin() const { return begin_; }
  std::size_t end() const { return begin_ + first_.size() - 1; }
  std::size_t groups() const { return groups_; }
  /// First line of row i. Its lines are [first_line(i), first_line(i + 1)), the lowest limb first.
  std::size_t first_line(std::size_t i) const { return first_[i - begin_]; }
  int limbs(std::size_t i) const { return static_cast<int>(first_line(i + 1) - first_line(i)); }
  /// Returns term k of the group's lines.
  const double* at(std::size_t group, std::size_t k) const;

 private:
  std::size_t begin_, length_, groups_ = 0;
  std::vector<std::size_t> first_;
  std::vector<double> lines_;
};

/// Up to kTileColumns neighbouring columns, with as many limbs as the column with the most bits
/// needs. Limb l of column j is column j of plane l.
class Panel {
 public:
  Panel(const Vectors& columns, std::size_t begin, const Limbs& how);

  std::size_t begin() const { return begin_; }
  std::size_t width() const { return width_; }
  int limbs() const { return limbs_; }
  /// Number of doubles of one term in all planes.
  std::size_t step() const { return static_cast<std::size_t>(limbs_) * kTileColumns; }

  /// Value of integer 1 in each column.
  const double* units() const { return units_.data(); }
  /// Writes the limbs of `terms` terms as add_tile reads them, plane l at packed + l·plane.
  void pack(const Vectors& columns, std::size_t from, std::size_t terms, double* packed,
            std::size_t plane) const;

 private:
  std::size_t begin_, width_;
  int limbs_ = 1;
  double base_, one_over_base_;
  std::array<double, kTileColumns> units_{}, one_over_units_{};
};

}  // namespace shardproof::oracle
