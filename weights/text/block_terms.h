#pragma once

#include <string_view>

#include "weights/text/composites.h"

namespace shardproof {

/// The two terms of a parallel block's sum, from attn and wo, and from hidden and w_out. The model
/// does not name them; a dump may.
inline constexpr std::string_view kBlockTerms[] = {"attn_out", "ffn_out"};
/// Returns whether a value is one of them in this model.
bool is_block_term(std::string_view name, const ModelConfig& config);
/// Returns their composites, with the scale of their sum; none if the model has no such terms.
NamedComposites block_terms_of(const ModelConfig& config, NumberFormat weights);

}  // namespace shardproof
