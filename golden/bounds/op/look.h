#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/numeric/threads.h"
#include "golden/bounds/op/sums.h"

namespace shardproof::bounds {

/// Whether an element of a value may be `v`: as bounds::holds has it, but with signs of zeros,
/// which the f32 regime defines.
bool allows(const Bounds& of, std::size_t part, std::size_t i, float v);

/// What a look at all elements of a value found.
struct Look {
  bool outside = false;  ///< some element may not be what it is
  /// The first of those furthest from the middle of their intervals; none where all are there.
  struct Furthest {
    std::size_t part, i;
  };
  std::optional<Furthest> furthest;
  double error = 0.0;    ///< how far that is
  double reach = 0.0;    ///< the most that an element may be off
  double squares = 0.0;  ///< Σ of the elements' squares
};

/// Looks once at each element that is no padding (of a part's elements, or none where all count),
/// by these threads; what it finds does not depend on them. `held` has the sizes of `of`.
Look look(const Bounds& of, const scalar::Value& held, const std::vector<bool>& padding,
          Threads& threads);

}  // namespace shardproof::bounds
