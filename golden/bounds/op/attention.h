#pragma once

#include <vector>

#include "engine/numeric/threads.h"
#include "golden/bounds/op/sums.h"
#include "weights/model/passes.h"

namespace shardproof::bounds {

/// Result number `result` of attend(q, k_cache, v_cache, pos[, slopes]), or of attend_prefix(q,
/// k_cache, v_cache, prefix k_cache, prefix v_cache, pos[, slopes]): score, max, exp, denom, attn,
/// in this order, in a model of this softmax. `results` are those before it, as the run had them;
/// `rows` are the pass's, or none where each has L tokens. Heads by these threads.
Bounds bounds_of_attention(std::size_t result, const std::vector<const scalar::Value*>& args,
                           const std::vector<const scalar::Value*>& results,
                           const std::vector<PassRows>& rows, Softmax softmax, Threads& threads);

}  // namespace shardproof::bounds
