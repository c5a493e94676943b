#pragma once

namespace shardproof {

/// materialize: an op computes the partial sums it returns. allow_lazy: it may leave them to the
/// one reduction that reads them (Partial::lazy), since nothing else does.
enum class PartialSums { materialize, allow_lazy };

}  // namespace shardproof
