#pragma once

#include "weights/base/error.h"

namespace shardproof {

/// Every bit of the engine and of the oracle assumes that this thread rounds to nearest and keeps
/// subnormals, as a process starts out. A host program may have changed that; linking it with
/// -ffast-math does. Throws Error: "ieee_c1" (another rounding mode), "ieee_c2" (subnormals are
/// flushed to zero).
void require_ieee();

}  // namespace shardproof
