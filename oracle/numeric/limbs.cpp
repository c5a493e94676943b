#include "oracle/numeric/limbs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "oracle/numeric/rounded.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

// With |limb| <= 2^(width-1) on both sides and 2^t terms, sums are at most 2^53 if the two widths
// and t add up to kBits.
constexpr int kBits = 55;
constexpr int kLeastWidth = 12;

int most_bits(const Vectors& vectors) {
  int most = 0;
  for (size_t i = 0; i < vectors.count(); ++i)
    if (vectors.scale(i).fits()) most = std::max(most, vectors.scale(i).bits);
  return most;
}

/// Removes the lowest limb from a whole number and returns it.
double cut(double& integer, double base, double one_over_base) {
  const double rest = std::nearbyint(integer * one_over_base);
  const double limb = integer - rest * base;
  integer = rest;
  return limb;
}

}  // namespace

Limbs choose_limbs(const Vectors& rows, const Vectors& columns) {
  const size_t length = std::max<size_t>(rows.length(), 1);
  const int column_bits = most_bits(columns);
  Limbs best;
  double least = std::numeric_limits<double>::infinity();
  const int most = std::min(static_cast<int>(std::bit_width(length - 1)), 12);
  for (int t = most; t >= std::min(most, 6); --t) {
    const size_t block = size_t{1} << t;
    const size_t whole_blocks = (length + block - 1) / block;
    const auto blocks = static_cast<double>(whole_blocks);
    for (int parts = 1; parts <= 4; ++parts) {
      const int column_width = column_bits / parts + 1;
      const int row_width = kBits - t - column_width;
      if (row_width < kLeastWidth) continue;
      // Splitting a block's sums costs about as much as 12 terms, 128-bit sums as 100.
      double cost = 0;
      for (size_t i = 0; i < rows.count(); ++i) {
        if (!rows.scale(i).fits()) continue;
        const int pairs = parts * limb_count(rows.scale(i).bits, row_width);
        const bool at_once = pairs <= 2 && block >= length;
        const double more = at_once ? 0 : 100 + (block >= length ? 0 : 12 * blocks);
        cost += pairs * (static_cast<double>(length) + more);
      }
      if (cost < least) least = cost, best = {row_width, column_width, block};
    }
  }
  return best;
}

PackedRows::PackedRows(const Vectors& rows, size_t begin, size_t end, const Limbs& limbs)
    : begin_(begin), length_(rows.length()) {
  size_t lines = 0;
  for (size_t i = begin; i < end; ++i) {
    first_.push_back(lines);
    const Scale scale = rows.scale(i);
    lines += scale.fits() ? static_cast<size_t>(limb_count(scale.bits, limbs.row_width)) : 1;
  }
  first_.push_back(lines);
  groups_ = (lines + kTileRows - 1) / kTileRows;
  lines_.resize(groups_ * kTileRows * length_);
  const double base = power_of_two(limbs.row_width), one_over_base = 1 / base;
  if (length_ == 0) return;  // rows.data() may have no elements
  for (size_t i = begin; i < end; ++i) {
    if (!rows.scale(i).fits()) continue;
    const double unit = power_of_two(-rows.scale(i).exponent);
    const size_t step = rows.element_step();
    const float* const row = rows.data() + i * rows.vector_step();
    const size_t first = first_line(i), last = first_line(i + 1) - 1;
    for (size_t k = 0; k < length_; ++k) {
      double integer = static_cast<double>(row[k * step]) * unit;
      for (size_t line = first; line <= last; ++line)
        lines_[(line / kTileRows * length_ + k) * kTileRows + line % kTileRows] =
            line == last ? integer : cut(integer, base, one_over_base);
    }
  }
}

const double* PackedRows::at(size_t group, size_t k) const {
  return lines_.data() + (group * length_ + k) * kTileRows;
}

Panel::Panel(const Vectors& columns, size_t begin, const Limbs& how)
    : begin_(begin),
      width_(std::min(kTileColumns, columns.count() - begin)),
      base_(power_of_two(how.column_width)),
      one_over_base_(1 / base_) {
  for (size_t c = 0; c < width_; ++c) {
    const Scale scale = columns.scale(begin + c);
    units_[c] = power_of_two(scale.exponent);
    if (!scale.fits()) continue;  // all its limbs are zero
    one_over_units_[c] = 1 / units_[c];
    limbs_ = std::max(limbs_, limb_count(scale.bits, how.column_width));
  }
}

void Panel::pack(const Vectors& columns, size_t from, size_t terms, double* packed,
                 size_t plane) const {
  const size_t next = columns.vector_step(), step = columns.element_step();
  const float* term = columns.data() + from * step + begin_ * next;
  const std::array<double, kTileColumns> factors = one_over_units_;
  if (next == 1 && width_ == kTileColumns && limbs_ == 1) {  // the case of most weights
    for (size_t k = 0; k < terms; ++k, term += step, packed += kTileColumns)
      for (size_t c = 0; c < kTileColumns; ++c)
        packed[c] = static_cast<double>(term[c]) * factors[c];
    return;
  }
  std::array<double, kTileColumns> integers{};  // missing columns are zero
  for (size_t k = 0; k < terms; ++k, term += step) {
    for (size_t c = 0; c < width_; ++c)
      integers[c] = static_cast<double>(term[c * next]) * factors[c];
    double* to = packed + k * kTileColumns;
    for (int l = 1; l < limbs_; ++l, to += plane)
      for (size_t c = 0; c < kTileColumns; ++c) to[c] = cut(integers[c], base_, one_over_base_);
    for (size_t c = 0; c < kTileColumns; ++c) to[c] = integers[c];
  }
}

}  // namespace shardproof::oracle
