#pragma once

#include "engine/collectives/moves.h"

namespace shardproof {

/// Returns the plan with the fault of a missing transfer: no chip receives anything from another,
/// and each fills its new shard from its own old one.
Moves without_transfer(Moves plan);

}  // namespace shardproof
