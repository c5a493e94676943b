#pragma once

#include <optional>
#include <vector>

namespace shardproof::diagnosis {

/// Returns the whole numbers nearest to the w that minimizes Σ(rows·w − right)²; nullopt if the
/// rows do not determine w, or w is not finite.
std::optional<std::vector<int>> whole_weights(const std::vector<std::vector<double>>& rows,
                                              const std::vector<double>& right);

}  // namespace shardproof::diagnosis
