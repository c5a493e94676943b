#pragma once

#include "engine/run/case.h"
#include "golden/compare/dim_padding.h"

namespace shardproof {

/// Returns the padding of a case, as the judges derive it.
inline DimPadding dim_padding(const Case& c) { return {c.model, c.pad_heads, c.pad_vocab}; }

}  // namespace shardproof
