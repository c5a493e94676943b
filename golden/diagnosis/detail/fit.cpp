#include "golden/diagnosis/detail/fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

namespace shardproof::diagnosis {
namespace {

/// Returns the whole numbers nearest to the w that minimizes Σ(rows·w − right)²; nullopt if the
/// rows do not determine w, or w is not finite.
std::optional<std::vector<int>> whole_weights(const std::vector<std::vector<double>>& rows,
                                              const std::vector<double>& right) {
  if (rows.empty() || rows.size() < rows[0].size()) return std::nullopt;
  const std::size_t n = rows[0].size();
  // Normal equations: the weights are off by far less than one half unless the rows are nearly
  // dependent, and the resulting prediction is checked like any other.
  std::vector<std::vector<double>> a;
  for (std::size_t i = 0; i < n; ++i) a.emplace_back(n + 1, 0.0);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) a[i][j] += rows[r][i] * rows[r][j];
      a[i][n] += rows[r][i] * right[r];
    }
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t j = i + 1; j < n; ++j)
      if (std::abs(a[j][i]) > std::abs(a[pivot][i])) pivot = j;
    std::swap(a[i], a[pivot]);
    if (!(std::abs(a[i][i]) > 0)) return std::nullopt;
    for (std::size_t j = 0; j < n; ++j) {
      if (j == i) continue;
      const double factor = a[j][i] / a[i][i];
      for (std::size_t k = i; k <= n; ++k) a[j][k] -= factor * a[i][k];
    }
  }
  std::vector<int> weights;
  for (std::size_t i = 0; i < n; ++i) {
    const double w = a[i][n] / a[i][i];
    // Larger than the chip count of any torus.
    if (!(std::abs(w) <= 4096)) return std::nullopt;
    weights.push_back(static_cast<int>(std::lround(w)));
  }
  return weights;
}

}  // namespace

std::optional<std::vector<int>> fitted_counts(const Question& q, const std::vector<int>& chips,
                                              std::size_t addends, std::size_t most,
                                              const AddendsOf& of) {
  // What several chips have is no more evidence than what one has.
  std::map<std::size_t, double> judged;
  for (const int chip : chips)
    for (const std::size_t local : q.judged(chip))
      judged.try_emplace(q.global(chip, local), q.shard(chip)[local]);
  if (judged.size() < 2 * addends) return std::nullopt;
  const std::size_t samples = std::min(judged.size(), most);
  std::vector<std::vector<double>> rows;
  std::vector<double> right;
  std::size_t i = 0;
  for (const auto& [g, given] : judged) {
    // The next sample is the first element at or behind its share.
    if (i++ < rows.size() * judged.size() / samples) continue;
    const double scale = of(g, rows.emplace_back());
    right.push_back((given - q.expected().center[g]) / scale);
  }
  return whole_weights(rows, right);
}

}  // namespace shardproof::diagnosis
