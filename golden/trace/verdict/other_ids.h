#pragma once

#include <optional>
#include <string>

#include "golden/trace/verdict/verdict.h"

namespace shardproof::candidate {

/// Of a trace without ids whose first divergence lies where the ids come in: that they may be
/// others than the seed's prompt, and which, as far as its embedding or first norm shows them.
std::optional<std::string> other_ids(const Values& values, const Claim& claim, Reference& reference,
                                     const Verdict& verdict);

}  // namespace shardproof::candidate
