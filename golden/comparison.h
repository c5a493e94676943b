#pragma once

#include <cstdint>
#include <optional>

#include "golden/expected.h"
#include "golden/judge.h"

namespace shardproof {

/// One value held against what it must be, by the layout that it is declared to have.
struct Comparison {
  std::int64_t elements = 0;  ///< compared, every replica counted, up to the first difference
  /// The first difference, if there is one: its chip, index, values and reach; the rest is empty.
  std::optional<Difference> difference;
};

/// A complete value is compared on every chip, replicas included; a partial one by its exact sum
/// over the partial axes, and on a few elements of each shard by the exact terms of its origins.
/// The value has the expected shape, up to a split H.
Comparison compare(const Expected& expected, const Layout& declared, const Sharded& value);

}  // namespace shardproof
