#include "golden/bounds/value/matrix_sums.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/numeric/detail/kernels.h"
#include "weights/base/detail/index.h"

namespace shardproof::bounds {
namespace {

constexpr std::size_t kColumns = kSumsColumns;  // columns summed side by side

/// Products to add: rows of x with a matrix, in which order, to which chips' sums.
struct Products {
  const std::vector<MatrixTerm>& terms;
  const std::vector<std::size_t>& rows;
  std::size_t columns, chips;
};

/// The sums of a few columns, as they are shown.
class SumsOfColumns {
 public:
  explicit SumsOfColumns(std::size_t chips) : sums_(kSumsSeen, Sums(chips)) {}

  /// Shows sum(column, chip) of `count` columns.
  template <class SumOf>
  void each(std::size_t row, std::size_t first, std::size_t count, const SeeSums& see,
            SumOf&& sum) {
    for (std::size_t from = 0; from < count; from += kSumsSeen) {
      const std::size_t some = std::min(kSumsSeen, count - from);
      for (std::size_t c = 0; c < some; ++c)
        for (std::size_t chip = 0; chip < sums_[c].size(); ++chip)
          sums_[c][chip] = sum(from + c, chip);
      see(row, first + from, std::span(sums_).first(some));
    }
  }

 private:
  std::vector<Sums> sums_;
};

/// Copies `count` columns of `terms` rows of a term's matrix, from row k and column `first` on, a
/// row's kColumns apart.
void read_rows(const MatrixTerm& term, std::size_t k, std::size_t terms, std::size_t first,
               std::size_t count, std::size_t columns, double* to) {
  if (!term.table) {
    for (const float* from = term.matrix->data() + k * columns + first; terms > 0;
         --terms, from += columns, to += kColumns)
      std::transform(from, from + count, to, wide);
    return;
  }
  // Few rows at a time: those of a whole panel, read column by column, would not stay in a cache.
  constexpr std::size_t kFew = 32;
  const float* const from = term.matrix->data() + first * term.width + k;
  for (std::size_t block = 0; block < terms; block += kFew)
    for (std::size_t c = 0; c < count; ++c)
      for (std::size_t i = block; i < std::min(block + kFew, terms); ++i)
        to[i * kColumns + c] = wide(from[c * term.width + i]);
}

// ---- to twice f64's digits ----

/// IntervalSum of several neighbouring columns; the matrix factor is exact.
struct Columns {
  std::array<double, kColumns> high{}, low{}, size{}, worst{}, likely{}, least{}, most{};
  std::int64_t count = 0;

  void add(const Number& a, const double* b) {
    const double p = std::abs(a.center);
    for (std::size_t c = 0; c < kColumns; ++c) {
      const double product = a.center * b[c];
      const double of_product = std::fma(a.center, b[c], -product);
      const double sum = high[c] + product, back = sum - high[c];
      low[c] += of_product + ((high[c] - (sum - back)) + (product - back));
      high[c] = sum;
      least[c] = std::min(least[c], sum);
      most[c] = std::max(most[c], sum);
      size[c] += p * std::abs(b[c]);
    }
    if (a.worst != 0) widen(a, b);
    ++count;
  }
  Sum sum(std::size_t c) const {
    return {count, high[c] + low[c], size[c], most[c] - least[c], worst[c], likely[c]};
  }

 private:
  void widen(const Number& a, const double* b) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      const double q = std::abs(b[c]);
      size[c] += a.worst * q;
      worst[c] += a.worst * q;
      likely[c] += a.likely * q;
    }
  }
};

void add_twice(const Products& of, std::size_t tile, const SeeSums& see) {
  const std::size_t first = tile * kColumns;
  const std::size_t count = std::min(kColumns, of.columns - first);
  std::vector<std::vector<std::array<double, kColumns>>> matrices;
  for (const MatrixTerm& term : of.terms) {
    auto& matrix = matrices.emplace_back(term.width, std::array<double, kColumns>{});
    for (std::size_t k = 0; k < term.width; ++k)
      read_rows(term, k, 1, first, count, of.columns, matrix[k].data());
  }
  SumsOfColumns shown(of.chips);
  for (std::size_t i = 0; i < of.rows.size(); ++i) {
    std::vector<Columns> parts(of.chips);
    for (std::size_t t = 0; t < of.terms.size(); ++t) {
      const MatrixTerm& term = of.terms[t];
      for (std::size_t k = 0; k < term.width; ++k) {
        const auto chip = term.chip.empty() ? 0 : static_cast<std::size_t>(term.chip[k]);
        parts[chip].add(term.x->number(of.rows[i] * term.width + k), matrices[t][k].data());
      }
    }
    shown.each(i, first, count, see,
               [&](std::size_t c, std::size_t chip) { return parts[chip].sum(c); });
  }
}

// ---- in f64, in blocks ----

constexpr std::size_t kSlabs = 4;    // groups of columns whose rows of the matrix are read together
constexpr std::size_t kTerms = 256;  // rows of the matrix in a panel
constexpr std::size_t kState = kSumsState;

/// Neighbouring products of one term that go to one chip.
struct Run {
  std::size_t term, first, count, chip;
};

std::vector<Run> runs_of(const std::vector<MatrixTerm>& terms) {
  std::vector<Run> runs;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const auto chip_of = [&](std::size_t k) {
      return terms[t].chip.empty() ? std::size_t{0} : static_cast<std::size_t>(terms[t].chip[k]);
    };
    for (std::size_t k = 0; k < terms[t].width; ++k) {
      const bool same = !runs.empty() && runs.back().term == t && runs.back().chip == chip_of(k);
      if (same && runs.back().count < kTerms)
        ++runs.back().count;
      else
        runs.push_back({t, k, 1, chip_of(k)});
    }
  }
  return runs;
}

/// Sums of a group of rows and columns, in f64: blocks of the matrix are converted once for all
/// rows, and no copy of a whole matrix is made.
class Blocks {
 public:
  Blocks(const Products& of, const std::vector<Run>& runs, bool range)
      : of_(of), runs_(runs), range_(range), counts_(of.chips, 0) {
    for (const MatrixTerm& term : of.terms)
      exact_.push_back(std::all_of(term.x->radius.begin(), term.x->radius.end(),
                                   [](double radius) { return radius == 0.0; }));
    for (const Run& run : runs) counts_[run.chip] += static_cast<std::int64_t>(run.count);
    // The state of a group of rows is about as large as a processor's own cache.
    group_ = std::max<std::size_t>((std::size_t{1} << 20U) / (kSlabs * kState * 8 * of.chips), 4);
  }

  std::size_t tiles() const { return (of_.columns + kSlabs * kColumns - 1) / (kSlabs * kColumns); }

  void add(std::size_t tile, const SeeSums& see) const {
    const std::size_t first = tile * kSlabs * kColumns;
    const std::size_t count = std::min(kSlabs * kColumns, of_.columns - first);
    std::vector<double> panel(kSlabs * kTerms * kColumns), state;
    for (std::size_t row = 0; row < of_.rows.size(); row += group_) {
      const std::size_t rows = std::min(group_, of_.rows.size() - row);
      state.assign(kSlabs * of_.chips * rows * kState, 0.0);
      for (const Run& run : runs_) {
        pack(run, first, count, panel);
        add(run, row, rows, count, panel, state);
      }
      show(state, row, rows, first, count, see);
    }
  }

 private:
  std::size_t state_of(std::size_t slab, std::size_t chip, std::size_t rows) const {
    return (slab * of_.chips + chip) * rows * kState;
  }

  void pack(const Run& run, std::size_t first, std::size_t count,
            std::vector<double>& panel) const {
    const MatrixTerm& term = of_.terms[run.term];
    for (std::size_t slab = 0; slab * kColumns < count; ++slab) {
      const std::size_t from = slab * kColumns, columns = std::min(kColumns, count - from);
      read_rows(term, run.first, run.count, first + from, columns, of_.columns,
                panel.data() + slab * kTerms * kColumns);
    }
  }

  void add(const Run& run, std::size_t row, std::size_t rows, std::size_t count,
           const std::vector<double>& panel, std::vector<double>& state) const {
    const MatrixTerm& term = of_.terms[run.term];
    std::vector<const double*> center, worst, likely;
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t at = of_.rows[row + i] * term.width;
      center.push_back(term.x->center.data() + at);
      worst.push_back(term.x->radius.data() + at);
      likely.push_back(term.x->likely.data() + at);
    }
    const bool exact = exact_[run.term];
    const SumsRows a{center.data(), exact ? nullptr : worst.data(),
                     exact ? nullptr : likely.data()};
    for (std::size_t slab = 0; slab * kColumns < count; ++slab)
      kernels_in_use().sums(static_cast<long>(rows), static_cast<long>(run.first),
                            static_cast<long>(run.count), a,
                            panel.data() + slab * kTerms * kColumns,
                            state.data() + state_of(slab, run.chip, rows), range_);
  }

  void show(const std::vector<double>& state, std::size_t row, std::size_t rows, std::size_t first,
            std::size_t count, const SeeSums& see) const {
    SumsOfColumns shown(of_.chips);
    for (std::size_t i = 0; i < rows; ++i)
      shown.each(row + i, first, count, see, [&](std::size_t c, std::size_t chip) -> Sum {
        const double* const at =
            state.data() + state_of(c / kColumns, chip, rows) + i * kState + c % kColumns;
        const auto n = static_cast<double>(counts_[chip]);
        return {counts_[chip],
                at[0],
                at[kColumns],
                at[3 * kColumns] - at[2 * kColumns],
                at[4 * kColumns],
                at[5 * kColumns],
                (n + 1) * 0x1p-53 * (1 + (2 * n + 8) * 0x1p-53) * at[kColumns]};
      });
  }

  const Products& of_;
  const std::vector<Run>& runs_;
  bool range_;
  std::vector<std::int64_t> counts_;
  std::vector<bool> exact_;  // by term: whether no number has a radius
  std::size_t group_ = 0;    // rows
};

}  // namespace

void each_sum(const std::vector<MatrixTerm>& terms, const std::vector<std::size_t>& rows,
              std::size_t columns, int chips, SumsNeeded needed, Threads& threads,
              const SeeSums& see) {
  const Products of{terms, rows, columns, static_cast<std::size_t>(chips)};
  if (needed.twice) {
    threads.for_each(
        static_cast<std::int64_t>((columns + kColumns - 1) / kColumns),
        [&](std::int64_t tile) { add_twice(of, static_cast<std::size_t>(tile), see); });
    return;
  }
  const std::vector<Run> runs = runs_of(terms);
  const Blocks blocks(of, runs, needed.range);
  threads.for_each(static_cast<std::int64_t>(blocks.tiles()),
                   [&](std::int64_t tile) { blocks.add(static_cast<std::size_t>(tile), see); });
}

void Total::add(const Sum& sum) {
  const double value = all_.value + sum.value, back = value - all_.value;
  low_ += (all_.value - (value - back)) + (sum.value - back);
  all_.value = value;
  all_.count += sum.count;
  all_.size += sum.size;
  all_.range += sum.range;
  all_.worst += sum.worst;
  all_.likely += sum.likely;
  all_.error += sum.error;
}

Sum Total::sum() const {
  Sum sum = all_;
  sum.value += low_;
  return sum;
}

Sum total(const Sums& sums) {
  Total all;
  for (const Sum& sum : sums) all.add(sum);
  return all.sum();
}

}  // namespace shardproof::bounds
