#pragma once

#include "weights/base/error.h"

namespace shardproof {

/// Checks that this thread rounds to nearest and keeps subnormals, which every bit of the engine
/// and of the oracle relies on. A host program may have changed that, for example by linking with
/// -ffast-math. Throws Error: "ieee_c1" (another rounding mode), "ieee_c2" (subnormals are flushed
/// to zero).
void require_ieee();

}  // namespace shardproof
