#pragma once

#include <optional>

#include "engine/program/execute.h"
#include "engine/shards/finding.h"

namespace shardproof {

/// Returns a finding if a checkpoint, raw value or statistic overflowed (docs/spec.md section 1.5):
/// after an infinite ss a norm is all zeros, finite and meaningless. Partial sums of the f32 regime
/// are not checked: what overflows there is not finite when the sum is complete. Caches are not
/// checked: slots that were never written hold NaN, and appended rows were checked before. In the
/// field regime: an element that is not a number.
std::optional<Finding> overflow(const Scope& scope, const Program& program,
                                const ValueDecl& declared, const Sharded& value);

}  // namespace shardproof
