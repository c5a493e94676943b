#include "oracle/numeric/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "oracle/numeric/each.h"
#include "oracle/numeric/exact_sum.h"
#include "oracle/numeric/limb_product.h"
#include "oracle/numeric/limbs.h"
#include "oracle/numeric/rounded.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

// Tile sizes that fit a core's caches: terms of a panel, columns of a strip, rows of a block.
constexpr size_t kTerms = 256, kFew = 32, kStrip = 64, kRows = 128;
// Least number of products worth a thread.
constexpr size_t kOfAThread = size_t{1} << 20;

/// Computes parts of a product: some rows times a strip of columns. Each thread has one object,
/// which reuses its memory for all its strips.
class Strips {
 public:
  Strips(const Vectors& rows, const PackedRows& lines, const Vectors& columns, const Limbs& limbs)
      : rows_(rows), lines_(lines), columns_(columns), limbs_(limbs) {}

  /// Writes S of the rows and of the strip of columns from `begin` on to the product `out`.
  void run(size_t begin, float* out) {
    open(begin);
    const size_t length = rows_.length(), block = limbs_.block;
    for (size_t from = 0; from < length; from += kTerms) {
      const size_t terms = std::min(kTerms, length - from);
      pack(from, terms);
      if (!split_) {
        add(from, 0, terms, terms);
        continue;
      }
      for (size_t k = 0; k < terms; k += block) add(from, k, std::min(k + block, terms), terms);
    }
    for (size_t i = lines_.begin(); i < lines_.end(); ++i)
      for (size_t p = 0; p < panels_.size(); ++p) {
        float* const to = out + i * columns_.count() + panels_[p].begin();
        if (!split_ && lines_.limbs(i) * panels_[p].limbs() <= 2)
          round_two(i, p, to);
        else
          round_all(i, p, to);
      }
  }

 private:
  void open(size_t begin) {
    panels_.clear();
    offsets_.clear();
    step_ = 0;
    for (size_t j = begin; j < std::min(begin + kStrip, columns_.count()); j += kTileColumns) {
      offsets_.push_back(step_);
      step_ += panels_.emplace_back(columns_, j, limbs_).step();
    }
    split_ = limbs_.block < rows_.length();
    low_ = lines_.groups() * kTileRows * step_;
    sums_.assign(split_ ? 2 * low_ : low_, 0.0);
    packed_.resize(std::min(kTerms, rows_.length()) * step_);
  }

  /// Packs a few terms of all panels at a time, because a row-major matrix stores them
  /// contiguously.
  void pack(size_t from, size_t terms) {
    for (size_t k = 0; k < terms; k += kFew)
      for (size_t p = 0; p < panels_.size(); ++p)
        panels_[p].pack(columns_, from + k, std::min(kFew, terms - k),
                        packed_.data() + offsets_[p] * terms + k * kTileColumns,
                        terms * kTileColumns);
  }

  /// Adds the limb products of the packed terms [begin, end), `from` being the first packed term.
  void add(size_t from, size_t begin, size_t end, size_t packed) {
    for (size_t g = 0; g < lines_.groups(); ++g)
      for (size_t c = 0; c < step_; c += kTileColumns) {
        const double* const a = lines_.at(g, from + begin);
        const double* const b = packed_.data() + c * packed + begin * kTileColumns;
        double* const to = sums_.data() + g * kTileRows * step_ + c;
        if (split_)
          add_split_tile(a, b, end - begin, to, step_, low_);
        else
          add_tile(a, b, end - begin, to, step_);
      }
  }

  /// Returns the sums of one limb of row i and one limb of a panel's columns.
  const double* sums(size_t i, int row_limb, size_t panel, int limb) const {
    const size_t line = lines_.first_line(i) + static_cast<size_t>(row_limb);
    return sums_.data() + line * step_ + offsets_[panel] + static_cast<size_t>(limb) * kTileColumns;
  }

  /// Rounds S from at most two sums: the f64 addition rounds once, as S requires; the other factors
  /// are powers of two.
  void round_two(size_t i, size_t panel, float* out) const {
    const Panel& columns = panels_[panel];
    const bool of_row = lines_.limbs(i) == 2;
    const bool two = of_row || columns.limbs() == 2;
    const double* const low = sums(i, 0, panel, 0);
    const double* const high = of_row ? sums(i, 1, panel, 0) : two ? sums(i, 0, panel, 1) : low;
    const double base = two ? power_of_two(of_row ? limbs_.row_width : limbs_.column_width) : 0.0;
    const double unit = power_of_two(rows_.scale(i).exponent);
    const double* const units = columns.units();
    std::array<float, kTileColumns> values;
    for (size_t c = 0; c < kTileColumns; ++c)
      values[c] = static_cast<float>((high[c] * base + low[c]) * unit * units[c]);
    std::copy_n(values.begin(), columns.width(), out);
  }

  /// Rounds S from any number of sums, by 128-bit integers.
  void round_all(size_t i, size_t panel, float* out) const {
    const Panel& columns = panels_[panel];
    std::array<Uint128, kTileColumns> total{};  // modulo 2^128
    for (int l = 0; l < lines_.limbs(i); ++l)
      for (int m = 0; m < columns.limbs(); ++m) {
        const double* const part = sums(i, l, panel, m);
        const int shift = l * limbs_.row_width + m * limbs_.column_width;
        for (size_t c = 0; c < columns.width(); ++c) {
          Int128 sum = static_cast<std::int64_t>(part[c]);
          if (split_) sum = sum * (1 << kSplit) + static_cast<std::int64_t>(part[c + low_]);
          total[c] += static_cast<Uint128>(sum) << shift;
        }
      }
    for (size_t c = 0; c < columns.width(); ++c)
      out[c] = rounded(static_cast<Int128>(total[c]),
                       rows_.scale(i).exponent + columns_.scale(columns.begin() + c).exponent);
  }

  const Vectors& rows_;
  const PackedRows& lines_;
  const Vectors& columns_;
  const Limbs& limbs_;

  std::vector<Panel> panels_;
  std::vector<size_t> offsets_;  ///< offset of each panel's sums in a line
  size_t step_ = 0;              ///< number of sums of a line
  bool split_ = false;           ///< whether sums are of blocks and split
  size_t low_ = 0;               ///< distance of the low parts from the high ones
  std::vector<double> packed_, sums_;
};

}  // namespace

float wide_dot(const Vectors& rows, size_t i, const Vectors& columns, size_t j) {
  Sum sum;
  for (size_t k = 0; k < rows.length(); ++k) sum.add(rows.at(i, k), columns.at(j, k));
  return sum.value();
}

std::optional<float> fixed_point_dot(const Vectors& rows, size_t i, const Vectors& columns,
                                     size_t j) {
  const Scale a = rows.scale(i), b = columns.scale(j);
  if (!sum_fits(a, b, rows.length())) return std::nullopt;
  Int128 sum = 0;
  for (size_t k = 0; k < rows.length(); ++k)
    sum += static_cast<Int128>(integer_of(rows.at(i, k), a)) * integer_of(columns.at(j, k), b);
  return rounded(sum, a.exponent + b.exponent);
}

std::vector<float> contract(const Vectors& rows, const Vectors& columns, int threads) {
  if (rows.length() != columns.length())
    throw Error("oracle_length",
                fmt::format("a contraction of {} terms with {}", rows.length(), columns.length()));
  std::vector<float> out(rows.count() * columns.count());
  const Limbs limbs = choose_limbs(rows, columns);
  const size_t strips = (columns.count() + kStrip - 1) / kStrip;
  const size_t worth = out.size() * rows.length() / kOfAThread + 1;
  const size_t at_once = std::min({strips, worth, static_cast<size_t>(std::max(threads, 1))});
  for (size_t begin = 0; begin < rows.count(); begin += kRows) {
    const PackedRows lines(rows, begin, std::min(begin + kRows, rows.count()), limbs);
    std::atomic<size_t> next{0};
    each(at_once, static_cast<int>(at_once), [&](size_t) {
      Strips part(rows, lines, columns, limbs);
      for (size_t n = next++; n < strips; n = next++) part.run(n * kStrip, out.data());
    });
  }
  // Recomputes the elements whose sums did not fit: so far they are zero or wrong.
  std::vector<size_t> not_all;
  int most = 0;
  for (size_t j = 0; j < columns.count(); ++j) most = std::max(most, columns.scale(j).bits);
  for (size_t i = 0; i < rows.count(); ++i)
    if (!sum_fits(rows.scale(i), {0, most}, rows.length())) not_all.push_back(i);
  each(not_all.size(), threads, [&](size_t n) {
    const size_t i = not_all[n];
    for (size_t j = 0; j < columns.count(); ++j)
      if (!sum_fits(rows.scale(i), columns.scale(j), rows.length()))
        out[i * columns.count() + j] = wide_dot(rows, i, columns, j);
  });
  return out;
}

}  // namespace shardproof::oracle
