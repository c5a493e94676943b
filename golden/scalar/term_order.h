#pragma once

#include <cstdint>
#include <vector>

#include "golden/scalar/ops.h"
#include "weights/base/error.h"

namespace shardproof::scalar {

/// The elements apart of one dim's neighbours; 0 where the value lacks the dim.
std::int64_t stride(const Value& t, char letter);
std::int64_t extent(const Value& t, char letter);

/// A range of a chip's own indices of one dim.
struct Range {
  std::int64_t from, to;
};

/// The offsets in a term's operands of its contracted elements that a place owns, in their order:
/// of `looped` (a contracted letter, or none) range after range.
struct Owned {
  std::vector<std::int64_t> a, b;
  bool a_side_by_side = true;  ///< each is the next after the one before it

  Owned(const EinsumSpec::Term& term, const Value& of_a, const Value& of_b, const Torus& torus,
        const Place& place, char looped = 0, const std::vector<Range>& ranges = {{0, 0}});
};

/// A term whose contracted elements come in an order of its own to each chip of a ring: that of
/// every place on the ring.
struct TermOrder {
  Axes ring;
  std::vector<Owned> of_chip;  ///< one without a ring

  TermOrder(const Op& op, std::size_t t, const std::vector<const Value*>& args, const Torus& torus,
            const Place& place);
};

/// Whose shards the chips of a place hold must follow from the place alone. Throws
/// Error("scalar_c2", ...) where it does not.
void require_placed(const Op& op, const std::vector<const Value*>& args, const Torus& torus);

}  // namespace shardproof::scalar
