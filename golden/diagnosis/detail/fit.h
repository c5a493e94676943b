#pragma once

#include <optional>
#include <vector>

namespace shardproof::diagnosis {

/// The whole numbers nearest to the w with the least Σ(rows·w − right)². None where the rows do not
/// determine them, or they are no number.
std::optional<std::vector<int>> whole_weights(const std::vector<std::vector<double>>& rows,
                                              const std::vector<double>& right);

}  // namespace shardproof::diagnosis
