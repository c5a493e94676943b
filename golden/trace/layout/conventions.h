#pragma once

#include <cstdint>
#include <vector>

#include "engine/layout/layout.h"
#include "golden/trace/claim/claim.h"
#include "golden/trace/layout/subject.h"
#include "weights/base/tensor.h"
#include "weights/storage/weights.h"

namespace shardproof::candidate {

/// Which element of the model's value a number of the writer's is, by the writer's order of dims,
/// heads and rotated channels, and its padding.
class Place {
 public:
  static constexpr std::int64_t kNone = -1;  ///< padded: it means nothing

  /// `layout` has the value's dims in the writer's order, `padded` their extents. What is given
  /// outlives this.
  Place(const Layout& layout, const Subject& subject, const Claim& claim, const Shape& padded);
  /// `theirs`: row-major in the writer's global shape.
  std::int64_t operator()(std::int64_t theirs);

 private:
  const Subject& subject_;
  const Claim& claim_;
  const Shape& padded_;
  Shape index_;
  std::vector<std::size_t> dim_;  // of the writer's, by the model's
};

/// What the writer's numbers are multiplied by to be the model's, by element; empty: 1.
std::vector<double> units_of(const Subject& subject, const Claim& claim, const Weights& weights);

}  // namespace shardproof::candidate
