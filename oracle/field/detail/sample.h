#pragma once

#include "oracle/field/detail/pass.h"

namespace shardproof::oracle::field {

/// Files the pass's token, [B], from its logits, [BV], and the operands of candidates and indices.
void sample(Pass& pass, const Value& logits);

}  // namespace shardproof::oracle::field
