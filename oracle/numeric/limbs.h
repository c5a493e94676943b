#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "oracle/numeric/limb_product.h"
#include "oracle/numeric/vectors.h"

namespace shardproof::oracle {

/// How the integers of a product are cut: into limbs, digits of either sign to the base 2^width,
/// the size of each at most half of that. Products of two limbs, up to `block` of them one after
/// the other, add up to 2^53 at most: f64 holds every sum of them, in whatever order.
struct Limbs {
  int row_width = 1, column_width = 1;
  std::size_t block = 1;  ///< a power of two; of more terms the sums of blocks are split
};

/// How many limbs hold integers of so many bits, and a sign.
inline int limb_count(int bits, int width) { return bits / width + 1; }

/// What costs least for these rows and columns. Vectors whose scales do not fit are left out.
Limbs choose_limbs(const Vectors& rows, const Vectors& columns);

/// The limbs of rows, each limb a line of doubles, in groups of kTileRows as add_tile reads them.
class PackedRows {
 public:
  /// Of the rows [begin, end). Of a row whose scale does not fit the line is zero.
  PackedRows(const Vectors& rows, std::size_t begin, std::size_t end, const Limbs& limbs);

  std::size_t begin() const { return begin_; }
  std::size_t end() const { return begin_ + first_.size() - 1; }
  std::size_t groups() const { return groups_; }
  /// The lines of row i, the lowest limb first: [first_line(i), first_line(i + 1)).
  std::size_t first_line(std::size_t i) const { return first_[i - begin_]; }
  int limbs(std::size_t i) const { return static_cast<int>(first_line(i + 1) - first_line(i)); }
  /// Term k of the group's lines.
  const double* at(std::size_t group, std::size_t k) const;

 private:
  std::size_t begin_, length_, groups_ = 0;
  std::vector<std::size_t> first_;
  std::vector<double> lines_;
};

/// Neighbouring columns, kTileColumns of them or what is left, with as many limbs as the one that
/// has most bits needs. Limb l of column j is column j of plane l.
class Panel {
 public:
  Panel(const Vectors& columns, std::size_t begin, const Limbs& how);

  std::size_t begin() const { return begin_; }
  std::size_t width() const { return width_; }
  int limbs() const { return limbs_; }
  /// Doubles of one term in all planes.
  std::size_t step() const { return static_cast<std::size_t>(limbs_) * kTileColumns; }

  /// What 1 is worth of each column's integers.
  const double* units() const { return units_.data(); }
  /// Writes the limbs of so many terms as add_tile reads them, those of plane l to packed +
  /// l·plane.
  void pack(const Vectors& columns, std::size_t from, std::size_t terms, double* packed,
            std::size_t plane) const;

 private:
  std::size_t begin_, width_;
  int limbs_ = 1;
  double base_, one_over_base_;
  std::array<double, kTileColumns> units_{}, one_over_units_{};
};

}  // namespace shardproof::oracle
