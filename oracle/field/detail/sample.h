#pragma once

#include <string>

#include "oracle/field/detail/numbers.h"
#include "oracle/formulas/detail/pass.h"

namespace shardproof::oracle::field {

/// Files the token of the pass `name`, [B], from its logits, [BV], and the operands of candidates
/// and indices.
void sample(Answer& answer, Pass<Numbers>& pass, const std::string& name,
            const Operand<Numbers>& logits);

}  // namespace shardproof::oracle::field
