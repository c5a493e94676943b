#pragma once

#include "oracle/field/detail/pass.h"

namespace shardproof::oracle::field {

/// Files the pass's token, [B], of its logits, [BV], and what candidates and indices are made of.
void sample(Pass& pass, const Value& logits);

}  // namespace shardproof::oracle::field
