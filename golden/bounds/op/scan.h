#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/numeric/threads.h"
#include "golden/bounds/op/sums.h"

namespace shardproof::bounds {

/// Returns whether an element may be `v`. Like bounds::holds, but +0 and −0 differ, because the f32
/// regime defines signs of zeros.
bool allows(const Bounds& of, std::size_t part, std::size_t i, float v);

/// Result of checking all elements of a value.
struct Scan {
  bool outside = false;  ///< some element is not allowed
  /// The first of the elements furthest from the middle of their intervals; nullopt if every
  /// element is in the middle.
  struct Worst {
    std::size_t part, i;
  };
  std::optional<Worst> worst;
  double error = 0.0;    ///< distance of `worst` from its middle
  double reach = 0.0;    ///< maximum error that an element may have
  double squares = 0.0;  ///< Σ of the squared elements
};

/// Checks each element that is not padding, on `threads`; the result does not depend on them.
/// `padding` flags the elements of a part; empty: no padding. `held` has the sizes of `of`.
Scan scan(const Bounds& of, const scalar::Value& held, const std::vector<bool>& padding,
          Threads& threads);

}  // namespace shardproof::bounds
