#pragma once

#include "engine/collectives/moves.h"

namespace shardproof {

/// The fault of a missing transfer: no chip receives anything from another, and each fills the
/// shape of its new shard from its own old one.
Moves without_transfer(Moves plan);

}  // namespace shardproof
