#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "golden/bounds/number/declared.h"
#include "golden/bounds/number/forms.h"
#include "weights/base/error.h"

namespace shardproof::bounds {

/// A place of a formula where an engine may round to the format that values are stored in.
struct RoundingPlace {
  std::string_view formula;  ///< "norm", "hidden", "rope", "score", "exp", "attn", "out", "sum"
  std::string_view key;      ///< "xr", as `rounding` names it
  std::string_view words;    ///< "x·r is rounded"
  bool hf;                   ///< whether the set "hf" has it
};
const std::vector<RoundingPlace>& rounding_places();

/// The formula that a named value follows from, "" where it has no such place.
std::string_view formula_of(std::string_view name);

/// One way of rounding a formula: which of its places do; or of some of them nobody says it.
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

/// What a declaration says of a formula: each of its places rounds, or not, or may. Where values
/// are not stored with fewer digits than sums none does. Throws what require_rounding throws.
Way declared_way(std::string_view formula, const Declared& declared);
/// All ways that it leaves open, that without any rounding first.
std::vector<Way> ways_of(std::string_view formula, const Declared& declared);

/// Of a declaration `rounding`: a set ("any", "spec", "hf"), or formulas with the places that
/// round, "norm:xr,hidden:act+inner,rope:"; what is not named is open. Throws
/// Error("dump_attribute",
/// ...) naming what it does not know.
void require_rounding(std::string_view text);

}  // namespace shardproof::bounds
