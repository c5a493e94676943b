#pragma once

#include <vector>

#include "golden/bounds/sums.h"

namespace shardproof::bounds {

/// Result number `result` of attend(q, k_cache, v_cache, pos[, slopes]): score, max, exp, denom,
/// attn, in this order. `results` are those before it, as the run had them.
Bounds bounds_of_attention(std::size_t result, const std::vector<const scalar::Value*>& args,
                           const std::vector<const scalar::Value*>& results);

}  // namespace shardproof::bounds
