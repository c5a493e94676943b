#pragma once

#include <vector>

#include "engine/numeric/threads.h"
#include "golden/bounds/op/sums.h"
#include "weights/model/passes.h"

namespace shardproof::bounds {

/// Returns the bounds of result number `result` (score, max, exp, denom, attn, in this order) of
/// attend(q, k_cache, v_cache, pos[, slopes]) or attend_prefix(q, k_cache, v_cache, prefix k_cache,
/// prefix v_cache, pos[, slopes]). `results` are the preceding results as the run had them; `rows`
/// are the pass's rows, or empty if each has L tokens. Heads are spread over `threads`.
Bounds bounds_of_attention(std::size_t result, const std::vector<const scalar::Value*>& args,
                           const std::vector<const scalar::Value*>& results,
                           const std::vector<PassRows>& rows, Softmax softmax, Threads& threads);

}  // namespace shardproof::bounds
