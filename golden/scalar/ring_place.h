#pragma once

#include <algorithm>
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
  bool operator==(const InRing&) const = default;
};

/// Of a reduce_scatter the block it goes to, and the half of that; of an all_reduce ⌊i·K/n⌋ for its
/// place i among the n elements of a shard, and the half of those with the same.
InRing in_ring(const Op& op, const Shape& shape, const Torus& torus, std::int64_t K,
               std::int64_t element);

/// Calls body(from, n, place in the ring) for all elements of a value, at most `most` that lie side
/// by side and have one place at a time, by all threads.
template <class Body>
void each_in_ring(const Op& op, const Shape& shape, const Setting& setting, Loop way,
                  std::int64_t most, Body&& body) {
  const std::int64_t count = element_count(shape), K = setting.torus.size(op.axes);
  const auto place = [&](std::int64_t element) {
    return way == Loop::none ? InRing{} : in_ring(op, shape, setting.torus, K, element);
  };
  constexpr std::int64_t kOfAThread = 1 << 12;
  setting.by().for_each((count + kOfAThread - 1) / kOfAThread, [&](std::int64_t part) {
    const std::int64_t end = std::min(count, (part + 1) * kOfAThread);
    for (std::int64_t from = part * kOfAThread; from < end;) {
      const InRing at = place(from);
      std::int64_t n = 1;
      while (n < std::min(most, end - from) && (way == Loop::none || place(from + n) == at)) ++n;
      body(from, n, at);
      from += n;
    }
  });
}

/// The way round a ring in which a reduction adds; none where the schedule knows no ring.
Loop way_round(const Op& op, const Setting& setting);

/// What a reduction adds up for a place on its result's partial axes: the parts of its K chips, in
/// the order of their block over its axes.
std::vector<const std::vector<float>*> members(const Op& op, const Value& t, const Torus& torus,
                                               Place place);

}  // namespace shardproof::scalar
