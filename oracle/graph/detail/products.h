#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "oracle/walk/array.h"
#include "weights/text/model_text.h"

namespace shardproof::oracle::graph {

/// Returns an einsum of f32 operands, (float) RN64 of each exact sum, by the products that the
/// model by hand has; nullopt if an operand is not f32 everywhere, or the terms are not products of
/// matrices of the same rows and columns. `shape`: that of the result.
std::optional<Lettered<double>> product_of_floats(
    const Expression& e, const std::vector<std::pair<Lettered<double>, Lettered<double>>>& operands,
    const Shape& shape);

}  // namespace shardproof::oracle::graph
