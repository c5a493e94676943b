#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof {

/// The answer to whether the set "hf" rounds a place: `open` where that depends on the model.
/// inner: tanh's gelu is written out there, or one function as silu and erf's gelu are.
enum class HfRounds : std::uint8_t { no, yes, open };

/// A place in a formula where an engine may round to the storage format, besides the stores of
/// docs/spec.md.
struct RoundingPlace {
  std::string_view formula;  ///< "norm", "hidden", "rope", "score", "exp", "attn", "out", "sum"
  std::string_view key;      ///< the name in a `rounding` declaration: "xr"
  std::string_view words;    ///< "x·r is rounded"
  HfRounds hf;
};
const std::vector<RoundingPlace>& rounding_places();
/// Returns the places of a formula, in the table's order.
std::vector<const RoundingPlace*> places_of(std::string_view formula);

/// Places of a formula as bits in the table's order: those that round, and those that may.
struct PinnedPlaces {
  std::uint32_t each = 0, open = 0;
};
/// Returns what a declaration pins of a formula; nullopt if it leaves all open. A declaration is
/// sets ("any", "spec", "hf") and formulas with their places, "norm:xr,hidden:act+inner,rope:"; a
/// later set or formula overrides an earlier one. Throws what require_places throws.
std::optional<PinnedPlaces> pinned_places(std::string_view declaration, std::string_view formula);

/// Returns whether the declaration pins the formula so that this place rounds, or may.
bool is_place_of(std::string_view declaration, std::string_view formula, std::string_view key);

/// Throws Error("rounding_places", ...), naming the unknown word, unless the text is a declaration.
void require_places(std::string_view declaration);

}  // namespace shardproof
