#pragma once

#include <string>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "golden/trace/layout/subject.h"

namespace shardproof::dump {

// Hints for an array whose shape is not the model's, as the end of a message; "" if there is none.

/// For kv heads that several chips hold: `theirs` heads in shards of this layout.
std::string hint_of_kv_heads(const Layout& layout, const Torus& torus, std::int64_t theirs,
                             std::int64_t K);
/// For tokens of all rows in one dim, [T,...], or [1,T,...] and [T,1,...]: `theirs` are the whole
/// extents in the order of `letters`.
std::string hint_of_flat_tokens(const std::string& letters, const Shape& theirs,
                                const Subject& subject);

}  // namespace shardproof::dump
