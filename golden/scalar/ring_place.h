#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "golden/scalar/ops.h"

namespace shardproof::scalar {

/// Returns the coordinates, on the axes of a layout, of the chips that hold a global element.
Place holder(const Layout& layout, const Shape& shape, const Torus& torus, std::int64_t element);

/// Returns the index of the block of a place over some axes, major to minor.
std::int64_t block_over(const Axes& axes, const Torus& torus, const Place& place);

/// The position of a global element in the ring of a reduction.
struct InRing {
  std::int64_t chunk = 0;
  bool second_half = false;
  bool operator==(const InRing&) const = default;
};

/// For a reduce_scatter returns the block that an element goes to, and the half of that block; for
/// an all_reduce chunk ⌊i·K/n⌋ of its index i among a shard's n elements, and the half of that
/// chunk.
InRing in_ring(const Op& op, const Shape& shape, const Torus& torus, std::int64_t K,
               std::int64_t element);

/// Calls body(from, n, position in the ring, terms) for all elements of a value, on all threads, in
/// pieces of at most `most` adjacent elements with one position; `terms` is a copy, which a thread
/// uses again.
template <class Terms, class Body>
void each_in_ring(const Op& op, const Shape& shape, const Setting& setting, Loop way,
                  std::int64_t most, const Terms& terms, Body&& body) {
  const std::int64_t count = element_count(shape), K = setting.torus.size(op.axes);
  const auto place = [&](std::int64_t element) {
    return way == Loop::none ? InRing{} : in_ring(op, shape, setting.torus, K, element);
  };
  constexpr std::int64_t kOfAThread = 1 << 12;
  setting.by().for_each((count + kOfAThread - 1) / kOfAThread, [&](std::int64_t part) {
    Terms own = terms;
    const std::int64_t end = std::min(count, (part + 1) * kOfAThread);
    for (std::int64_t from = part * kOfAThread; from < end;) {
      const InRing at = place(from);
      std::int64_t n = 1;
      while (n < std::min(most, end - from) && (way == Loop::none || place(from + n) == at)) ++n;
      body(from, n, at, own);
      from += n;
    }
  });
}

/// Returns the direction of a reduction round its ring; none if the schedule uses no ring.
Loop way_round(const Op& op, const Setting& setting);

/// Returns the terms of a reduction for a place on its result's partial axes: the partial sums of
/// its K chips, in the order of their block over its axes.
std::vector<const std::vector<float>*> members(const Op& op, const Value& t, const Torus& torus,
                                               Place place);

}  // namespace shardproof::scalar
