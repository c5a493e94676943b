#pragma once

#include "engine/run/case.h"
#include "golden/compare/dim_padding.h"

namespace shardproof {

/// What a case pads, as the judges read it.
inline DimPadding dim_padding(const Case& c) { return {c.model, c.pad_heads, c.pad_vocab}; }

}  // namespace shardproof
