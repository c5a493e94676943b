#include "golden/bounds/value/matrix_sums.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shardproof::bounds {
namespace {

constexpr std::size_t kColumns = 16;  // columns summed side by side

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

/// Copies row k of a term's matrix, from column `first` on; entries past the last column stay 0.
void read_columns(const MatrixTerm& term, std::size_t k, std::size_t first, std::size_t count,
                  std::size_t columns, double* to) {
  const float* const from = term.matrix->data();
  for (std::size_t c = 0; c < count; ++c)
    to[c] = static_cast<double>(term.table ? from[(first + c) * term.width + k]
                                           : from[k * columns + first + c]);
}

}  // namespace

void each_sum(const std::vector<MatrixTerm>& terms, const std::vector<std::size_t>& rows,
              std::size_t columns, int chips, Threads& threads,
              const std::function<void(std::size_t, std::size_t, const Sums&)>& see) {
  const std::size_t tiles = (columns + kColumns - 1) / kColumns;
  threads.for_each(static_cast<std::int64_t>(tiles), [&](std::int64_t tile) {
    const std::size_t first = static_cast<std::size_t>(tile) * kColumns;
    const std::size_t count = std::min(kColumns, columns - first);
    std::vector<std::vector<std::array<double, kColumns>>> matrices;
    for (const MatrixTerm& term : terms) {
      auto& of = matrices.emplace_back(term.width, std::array<double, kColumns>{});
      for (std::size_t k = 0; k < term.width; ++k)
        read_columns(term, k, first, count, columns, of[k].data());
    }
    Sums sums(static_cast<std::size_t>(chips));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<Columns> parts(static_cast<std::size_t>(chips));
      for (std::size_t t = 0; t < terms.size(); ++t)
        for (std::size_t k = 0; k < terms[t].width; ++k) {
          const auto chip = terms[t].chip.empty() ? 0 : static_cast<std::size_t>(terms[t].chip[k]);
          parts[chip].add(terms[t].x->number(rows[i] * terms[t].width + k), matrices[t][k].data());
        }
      for (std::size_t c = 0; c < count; ++c) {
        for (std::size_t part = 0; part < parts.size(); ++part) sums[part] = parts[part].sum(c);
        see(i, first + c, sums);
      }
    }
  });
}

Sum total(const Sums& sums) {
  Sum all;
  double low = 0.0;
  for (const Sum& sum : sums) {
    const double value = all.value + sum.value, back = value - all.value;
    low += (all.value - (value - back)) + (sum.value - back);
    all.value = value;
    all.count += sum.count;
    all.size += sum.size;
    all.range += sum.range;
    all.worst += sum.worst;
    all.likely += sum.likely;
  }
  all.value += low;
  return all;
}

}  // namespace shardproof::bounds
