#pragma once

#include <cstdint>
#include <vector>

namespace shardproof {

class TileSum;

/// One element of a partial sum's shards.
struct Element {
  int chip;
  std::int64_t index;
};

/// Every chip's partial sums, read tile by tile by the reduction that adds them: from memory, or
/// computed on demand.
class PartialTiles {
 public:
  virtual ~PartialTiles() = default;
  /// Elements that are computed together: tiles begin and end at multiples of it.
  virtual std::int64_t row() const = 0;
  /// Adds the elements [begin, begin + sum.size()) of a chip's shard.
  virtual void add_to(TileSum& sum, int chip, std::int64_t begin) const = 0;
  /// (float)RN64 of the exact sum of these elements, which the rounding test leaves undecided.
  virtual float exact_sum(const std::vector<Element>& elements) const = 0;
};

}  // namespace shardproof
