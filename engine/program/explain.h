#pragma once

#include <string>

#include "engine/program/count.h"

namespace shardproof {

struct ExplainOptions {
  bool paper = false;  ///< drop (K−1)/K, as the paper does
};

/// Prints a checked program in 80 columns: every step with layout, local shape and, where data
/// moves, the elements and bytes one chip sends, beside their formula; then the totals.
std::string explain(const Program& program, const std::map<std::string, Type>& types,
                    const Torus& torus, const Numerics& numerics, const ModelConfig& config,
                    const ExplainOptions& options = {});

}  // namespace shardproof
