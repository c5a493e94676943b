#pragma once

#include <cstdint>
#include <vector>

#include "golden/scalar/ops.h"

namespace shardproof::scalar {

/// The places on the axes of a layout whose chips hold a global element.
Place holder(const Layout& layout, const Shape& shape, const Torus& torus, std::int64_t element);

/// The block that a place has over some axes, major to minor.
std::int64_t block_over(const Axes& axes, const Torus& torus, const Place& place);

/// Where a global element is in the ring of a reduction.
struct InRing {
  std::int64_t chunk = 0;
  bool second_half = false;
};

/// Of a reduce_scatter the block it goes to, and the half of that; of an all_reduce ⌊i·K/n⌋ for its
/// place i among the n elements of a shard, and the half of those with the same.
InRing in_ring(const Op& op, const Shape& shape, const Torus& torus, std::int64_t K,
               std::int64_t element);

/// The way round a ring in which a reduction adds; none where the schedule knows no ring.
Loop way_round(const Op& op, const Setting& setting);

/// What a reduction adds up for a place on its result's partial axes: the parts of its K chips, in
/// the order of their block over its axes.
std::vector<const std::vector<float>*> members(const Op& op, const Value& t, const Torus& torus,
                                               Place place);

}  // namespace shardproof::scalar
