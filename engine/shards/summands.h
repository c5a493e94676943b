#pragma once

#include <cstdint>
#include <vector>

namespace shardproof {

class TileSum;

/// The element of a partial shard: its place.
struct Element {
  int chip;
  std::int64_t index;
};

/// Every chip's shard of summands, asked for tile by tile by whoever adds them up: shards that lie
/// in memory, or that are made where they are read.
class Summands {
 public:
  virtual ~Summands() = default;
  /// Elements that are made together: tiles begin and end at multiples of it.
  virtual std::int64_t row() const = 0;
  /// Adds the elements [begin, begin + sum.size()) of a chip's shard.
  virtual void add_to(TileSum& sum, int chip, std::int64_t begin) const = 0;
  /// (float)RN64 of the exact sum of these elements, which their values do not decide.
  virtual float exact_sum(const std::vector<Element>& elements) const = 0;
};

}  // namespace shardproof
