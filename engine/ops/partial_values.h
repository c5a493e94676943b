#pragma once

namespace shardproof {

/// Whether an op makes the values of the partial sums that it yields, or may leave that to the one
/// reduction that reads them (Partial::unmade): where nothing else looks at them.
enum class PartialValues { made, may_be_unmade };

}  // namespace shardproof
