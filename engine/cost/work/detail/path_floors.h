#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/cost/chip/chip.h"
#include "engine/layout/layout.h"
#include "engine/layout/torus.h"

namespace shardproof::cost {

/// The least seconds in which any sequence of legal ops takes a value from one layout to another. A
/// program's path is the cheapest in elements on a 4x4x4 torus (engine/layouts/path.h); on the
/// actual torus and chip it is one of these sequences, so it is never faster. One search finds all
/// targets of a source layout, and its result is cached.
class PathFloors {
 public:
  /// A value that moves: its shardable dims and their extents, the number of elements behind each
  /// of their index tuples, and bytes per element as a partial sum and when complete.
  struct Value {
    std::string letters;
    std::vector<std::int64_t> extents;
    std::int64_t behind = 1;
    int partial_bytes = 4, whole_bytes = 4;
  };

  PathFloors(Value value, const Torus& torus, const Chip& chip);

  /// Seconds from a layout to a complete one, ring steps included; infinite if no sequence leads
  /// there. Only dims of more than one element can be sharded, over axes of more than one chip.
  double seconds(const Layout& from, const Layout& to);

 private:
  using Reached = std::unordered_map<std::uint64_t, double>;
  struct State;
  /// The cost of an op: seconds per byte of the larger of its two buffers, and seconds for its
  /// steps.
  struct Price {
    double per_byte = 0.0, steps = 0.0;
  };
  Reached search(const State& from);
  State state_of(const Layout& layout) const;
  bool divides(std::size_t dim, const Axes& axes) const;
  double edge(const State& larger, bool partial, int kind, const Axes& axes, const Axes& as);
  Price price(int kind, const Axes& axes, const Axes& as) const;

  Value value_;
  Torus torus_;
  Chip chip_;
  std::vector<Axes> runs_;  ///< every ordered list of axes of more than one chip
  std::unordered_map<std::uint64_t, Price> prices_;  ///< by op and axes
  std::unordered_map<std::uint64_t, Reached> known_;
};

}  // namespace shardproof::cost
