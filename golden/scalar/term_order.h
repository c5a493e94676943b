#pragma once

#include <cstdint>
#include <vector>

#include "golden/scalar/ops.h"
#include "weights/base/error.h"

namespace shardproof::scalar {

/// Returns the distance in elements between neighbours along a dim; 0 if the value lacks the dim.
std::int64_t stride(const Value& t, char letter);
std::int64_t extent(const Value& t, char letter);

/// A range of a chip's own indices of one dim.
struct Range {
  std::int64_t from, to;
};

/// The offsets, in a term's two operands, of the contracted elements that a place owns, in
/// summation order: along `looped` (a contracted letter, or none) range after range.
struct OwnedTerms {
  std::vector<std::int64_t> a, b;
  bool a_side_by_side = true;  ///< the offsets in `a` are contiguous

  OwnedTerms(const EinsumSpec::Term& term, const Value& of_a, const Value& of_b, const Torus& torus,
             const Place& place, char looped = 0, const std::vector<Range>& ranges = {{0, 0}});
};

/// The order of a term's contracted elements, which in a ring differs by chip: one for every place
/// on the ring.
struct TermOrder {
  Axes ring;
  std::vector<OwnedTerms> of_chip;  ///< a single one without a ring

  TermOrder(const Op& op, std::size_t t, const std::vector<const Value*>& args, const Torus& torus,
            const Place& place);
};

/// Checks that the place alone determines the shards that its chips hold. Throws Error("scalar_c2",
/// ...) otherwise.
void require_placed(const Op& op, const std::vector<const Value*>& args, const Torus& torus);

}  // namespace shardproof::scalar
