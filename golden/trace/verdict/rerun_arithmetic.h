#pragma once

#include "golden/bounds/number/declared_arithmetic.h"
#include "golden/rerun/arithmetic.h"

namespace shardproof::dump {

/// Returns the arithmetic of runs of a trace's model that stand for its own: each run draws the
/// rounding places that `rounding` leaves open.
rerun::Arithmetic rerun_arithmetic(const bounds::DeclaredArithmetic& declared);

}  // namespace shardproof::dump
