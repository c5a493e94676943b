#pragma once

#include <cstdint>
#include <vector>

#include "engine/layout/layout.h"
#include "golden/trace/claim/claim.h"
#include "golden/trace/layout/subject.h"
#include "weights/base/tensor.h"
#include "weights/storage/weights.h"

namespace shardproof::dump {

/// Maps the writer's elements to the model's, by the writer's order of dims, heads and rotated
/// channels, and its padding.
class Place {
 public:
  static constexpr std::int64_t kNone = -1;  ///< padding

  /// `layout` has the value's dims in the writer's order, `padded` their extents. All arguments
  /// outlive the object.
  Place(const Layout& layout, const Subject& subject, const Claim& claim, const Shape& padded);
  /// Returns the row-major element of the model's value, or kNone. `theirs` is row-major in the
  /// writer's global shape.
  std::int64_t operator()(std::int64_t theirs);
  /// Returns whether each element is the model's of the same number.
  bool changes_nothing() const;

 private:
  const Subject& subject_;
  const Claim& claim_;
  const Shape& padded_;
  bool in_pairs_;
  Shape index_;
  std::vector<std::size_t> dim_;  // index of each of the model's dims in the writer's order
};

/// Returns the factors from the writer's numbers to the model's, by element; empty: all 1.
std::vector<double> units_of(const Subject& subject, const Claim& claim, const Weights& weights);

}  // namespace shardproof::dump
