// The sums of products with a matrix, column by column, against plain loops.
#include "golden/bounds/value/matrix_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace shardproof::bounds {
namespace {

/// Rows of numbers that are known to within a radius, or exactly.
IntervalTensor drawn_rows(std::int64_t rows, std::int64_t width, std::mt19937& random) {
  std::normal_distribution<double> gauss;
  IntervalTensor x(Shape{rows, width});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double worst = random() % 3 == 0 ? 0.0 : std::abs(gauss(random));
    x.set(i, Number{gauss(random), worst, 0.25 * worst});
  }
  return x;
}

/// Expects the quantities that sum_bounds.h names, of the sum of products a·b in this order.
void expect_sum(const Sum& sum, const std::vector<std::pair<Number, double>>& products) {
  Sum plain;
  double high = 0.0, low = 0.0, exact = 0.0;
  for (const auto& [a, b] : products) {
    ++plain.count;
    exact += a.center * b;
    high = std::max(high, exact), low = std::min(low, exact);
    plain.size += (std::abs(a.center) + a.worst) * std::abs(b);
    plain.worst += a.worst * std::abs(b);
    plain.likely += a.likely * std::abs(b);
  }
  const double close = 1e-12 * (1.0 + plain.size);
  EXPECT_EQ(sum.count, plain.count);
  EXPECT_NEAR(sum.value, exact, close);
  EXPECT_NEAR(sum.size, plain.size, close);
  EXPECT_NEAR(sum.range, high - low, close);
  EXPECT_NEAR(sum.worst, plain.worst, close);
  EXPECT_NEAR(sum.likely, plain.likely, close);
}

TEST(MatrixSums, AreThoseOfPlainLoops) {
  std::mt19937 random(1);
  std::normal_distribution<float> gauss;
  Threads threads(2);
  for (const std::size_t columns : {1U, 15U, 16U, 37U})
    for (const bool table : {false, true})
      for (const int chips : {1, 3}) {
        // Two terms, of 7 and of 4 products, and rows in an order of their own.
        const std::vector<std::size_t> widths{7, 4}, rows{2, 0, 2};
        std::vector<IntervalTensor> x;
        std::vector<std::vector<float>> matrices;
        for (const std::size_t width : widths) {
          x.push_back(drawn_rows(3, static_cast<std::int64_t>(width), random));
          matrices.emplace_back(width * columns);
          for (float& v : matrices.back()) v = gauss(random);
        }
        std::vector<MatrixTerm> terms;
        for (std::size_t t = 0; t < widths.size(); ++t) {
          terms.push_back({&x[t], &matrices[t], widths[t], table});
          for (std::size_t k = 0; k < widths[t] && chips > 1; ++k)
            terms[t].chip.push_back(static_cast<int>((k + t) % static_cast<std::size_t>(chips)));
        }
        std::vector<std::vector<Sums>> seen(rows.size(), std::vector<Sums>(columns));
        each_sum(terms, rows, columns, chips, threads,
                 [&](std::size_t row, std::size_t c, const Sums& sums) { seen[row][c] = sums; });
        for (std::size_t i = 0; i < rows.size(); ++i)
          for (std::size_t c = 0; c < columns; ++c) {
            ASSERT_EQ(seen[i][c].size(), static_cast<std::size_t>(chips));
            for (int chip = 0; chip < chips; ++chip) {
              std::vector<std::pair<Number, double>> products;
              for (std::size_t t = 0; t < widths.size(); ++t)
                for (std::size_t k = 0; k < widths[t]; ++k)
                  if (chips == 1 || terms[t].chip[k] == chip)
                    products.emplace_back(x[t].number(rows[i] * widths[t] + k),
                                          matrices[t][table ? c * widths[t] + k : k * columns + c]);
              expect_sum(seen[i][c][static_cast<std::size_t>(chip)], products);
            }
          }
      }
}

}  // namespace
}  // namespace shardproof::bounds
