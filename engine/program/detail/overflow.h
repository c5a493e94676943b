#pragma once

#include <optional>

#include "engine/program/execute.h"
#include "engine/shards/finding.h"

namespace shardproof {

/// A checkpoint, raw value or statistic that overflowed (docs/spec.md section 1.5): after an
/// infinite ss a norm is all zeros, finite and empty. What overflows in a partial of the f32 regime
/// still is not finite when the sum is complete. Cache slots that nothing wrote hold NaN, and what
/// is appended was seen before. In the field regime: an element that is no number.
std::optional<Finding> overflow(const Scope& scope, const Program& program,
                                const ValueDecl& declared, const Sharded& value);

}  // namespace shardproof
