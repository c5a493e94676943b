#pragma once

namespace shardproof {

/// made: an op computes the values of the partial sums it returns. may_be_unmade: it may leave them
/// to the one reduction that reads them (Partial::unmade), since nothing else does.
enum class PartialValues { made, may_be_unmade };

}  // namespace shardproof
