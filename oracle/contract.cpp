#include "oracle/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "oracle/each.h"
#include "oracle/exact_sum.h"
#include "oracle/limb_product.h"
#include "oracle/limbs.h"
#include "oracle/rounded.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

// What stays in a core's caches: the terms of a panel, the columns of a strip, the rows of a block.
constexpr size_t kTerms = 256, kStrip = 64, kRows = 128;
// Fewer products than these are not worth a thread.
constexpr size_t kOfAThread = size_t{1} << 18;

/// Some rows of a product times the columns of a strip.
class Strip {
 public:
  Strip(const Vectors& rows, const PackedRows& lines, const Vectors& columns, size_t begin,
        const Limbs& limbs)
      : rows_(rows), lines_(lines), columns_(columns), limbs_(limbs), begin_(begin) {
    for (size_t j = begin; j < std::min(begin + kStrip, columns.count()); j += kTileColumns) {
      panels_.emplace_back(columns, j, limbs);
      offsets_.push_back(step_);
      step_ += static_cast<size_t>(panels_.back().limbs) * kTileColumns;
    }
    for (size_t j = begin; j < std::min(begin + kStrip, columns.count()); ++j)
      units_.push_back(std::ldexp(1.0, columns.scale(j).exponent));
    sums_of_limbs_.resize(lines.groups() * kTileRows * step_);
    packed_.resize(std::min(kTerms, rows.length()) * step_);
  }

  /// Writes its part of the product, whose rows are columns.count() wide.
  void run(float* out) {
    const size_t length = rows_.length();
    const bool at_once = limbs_.block >= length;
    for (size_t from = 0; from < length; from += limbs_.block) {
      add_block(from, std::min(from + limbs_.block, length));
      if (!at_once) add_up();
    }
    for (size_t i = lines_.begin(); i < lines_.end(); ++i)
      for (size_t p = 0; p < panels_.size(); ++p) {
        float* const to = out + i * columns_.count() + panels_[p].begin;
        if (at_once && lines_.limbs(i) * panels_[p].limbs <= 2)
          round_two(i, p, to);
        else
          round_all(i, p, at_once, to);
      }
  }

 private:
  /// Adds the products of limbs of terms [from, to), at most limbs_.block.
  void add_block(size_t from, size_t to) {
    for (size_t k = from; k < to; k += kTerms) {
      const size_t terms = std::min(kTerms, to - k);
      for (size_t p = 0; p < panels_.size(); ++p)
        panels_[p].pack(columns_, limbs_, k, k + terms, packed_.data() + offsets_[p] * terms);
      for (size_t g = 0; g < lines_.groups(); ++g)
        for (size_t c = 0; c < step_; c += kTileColumns)
          add_tile(lines_.at(g, k), packed_.data() + c * terms, terms,
                   sums_of_limbs_.data() + g * kTileRows * step_ + c, step_);
    }
  }

  /// The sums of one limb of a row and one of a panel's columns.
  const double* sums(size_t line, size_t panel, int limb) const {
    return sums_of_limbs_.data() + line * step_ + offsets_[panel] +
           static_cast<size_t>(limb) * kTileColumns;
  }

  /// What they are worth together, as an integer modulo 2^128.
  Uint128 whole(size_t i, size_t panel, size_t c) const {
    Uint128 sum = 0;
    for (int l = 0; l < lines_.limbs(i); ++l)
      for (int m = 0; m < panels_[panel].limbs; ++m) {
        const double part = sums(lines_.first_line(i) + static_cast<size_t>(l), panel, m)[c];
        sum += static_cast<Uint128>(static_cast<Int128>(static_cast<std::int64_t>(part)))
               << (l * limbs_.row_width + m * limbs_.column_width);
      }
    return sum;
  }

  /// Moves the sums of a block, of which f64 would not hold more, to integers.
  void add_up() {
    integers_.resize((lines_.end() - lines_.begin()) * kStrip);
    for (size_t i = lines_.begin(); i < lines_.end(); ++i)
      for (size_t p = 0; p < panels_.size(); ++p)
        for (size_t c = 0; c < panels_[p].width; ++c)
          integers_[integer_at(i, p, c)] += whole(i, p, c);
    std::fill(sums_of_limbs_.begin(), sums_of_limbs_.end(), 0.0);
  }

  size_t integer_at(size_t i, size_t panel, size_t c) const {
    return (i - lines_.begin()) * kStrip + panels_[panel].begin - begin_ + c;
  }

  /// Of one or two sums of limbs: what f64 adds up is rounded once, as S must be, and the rest are
  /// powers of two.
  void round_two(size_t i, size_t panel, float* out) const {
    const Panel& columns = panels_[panel];
    const size_t line = lines_.first_line(i);
    const bool of_row = lines_.limbs(i) == 2;
    const double* const low = sums(line, panel, 0);
    const bool two = of_row || columns.limbs == 2;
    const double* const high = of_row ? sums(line + 1, panel, 0) : two ? sums(line, panel, 1) : low;
    const double base =
        two ? std::ldexp(1.0, of_row ? limbs_.row_width : limbs_.column_width) : 0.0;
    const double unit = std::ldexp(1.0, rows_.scale(i).exponent);
    const double* const units = units_.data() + (columns.begin - begin_);
    for (size_t c = 0; c < columns.width; ++c)
      out[c] = static_cast<float>((high[c] * base + low[c]) * unit * units[c]);
  }

  void round_all(size_t i, size_t panel, bool at_once, float* out) const {
    const Panel& columns = panels_[panel];
    for (size_t c = 0; c < columns.width; ++c) {
      const Uint128 sum = at_once ? whole(i, panel, c) : integers_[integer_at(i, panel, c)];
      out[c] = rounded(static_cast<Int128>(sum),
                       rows_.scale(i).exponent + columns_.scale(columns.begin + c).exponent);
    }
  }

  const Vectors& rows_;
  const PackedRows& lines_;
  const Vectors& columns_;
  const Limbs& limbs_;
  size_t begin_;
  std::vector<Panel> panels_;
  std::vector<size_t> offsets_;  ///< of each panel's sums in a line's
  size_t step_ = 0;              ///< a line's sums of limbs
  std::vector<double> packed_, sums_of_limbs_;
  std::vector<double> units_;  ///< what one is worth of each column's integers
  std::vector<Uint128> integers_;
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
  const bool small = out.size() * rows.length() < kOfAThread;
  for (size_t begin = 0; begin < rows.count(); begin += kRows) {
    const PackedRows lines(rows, begin, std::min(begin + kRows, rows.count()), limbs);
    each(strips, small ? 1 : threads,
         [&](size_t strip) { Strip(rows, lines, columns, strip * kStrip, limbs).run(out.data()); });
  }
  // What did not fit is zero, or wrong, so far.
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
