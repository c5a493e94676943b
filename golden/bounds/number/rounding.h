#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "golden/bounds/number/declared_arithmetic.h"
#include "golden/bounds/number/forms.h"
#include "weights/base/error.h"
#include "weights/model/rounding_places.h"

namespace shardproof::bounds {

/// One way of rounding a formula: the places that round, and the places where that is unknown.
class Way {
 public:
  Way(std::string_view formula, std::uint32_t places, std::uint32_t open = 0)
      : formula_(formula), places_(places), open_(open) {}
  Rounds rounds(std::string_view key) const;
  /// "x·r is rounded", "r is rounded, x·r is rounded"; "nothing is rounded before the value".
  std::string words() const;

 private:
  std::string_view formula_;
  std::uint32_t places_, open_;
};

/// Returns what the declaration says of a formula: each place rounds, does not, or may. No place
/// rounds if values are stored in as many digits as sums. Throws what require_rounding throws.
Way declared_way(std::string_view formula, const DeclaredArithmetic& declared);
/// Returns all ways that the declaration leaves open, the one without roundings first.
std::vector<Way> ways_of(std::string_view formula, const DeclaredArithmetic& declared);

/// Checks a `rounding` declaration: a set ("any", "spec", "hf"), or formulas with the places that
/// round, "norm:xr,hidden:act+inner,rope:"; formulas not named are open. Throws
/// Error("dump_attribute", ...) naming the unknown word.
void require_rounding(std::string_view text);

}  // namespace shardproof::bounds
