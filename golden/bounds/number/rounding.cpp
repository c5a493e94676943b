#include "golden/bounds/number/rounding.h"

#include <fmt/format.h>

namespace shardproof::bounds {

Rounds Way::rounds(std::string_view key) const {
  const auto places = places_of(formula_);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i]->key == key && (open_ >> i & 1U) != 0) return Rounds::some;
    if (places[i]->key == key && (places_ >> i & 1U) != 0) return Rounds::each;
  }
  return Rounds::none;
}

std::string Way::words() const {
  std::string words;
  std::size_t place = 0;
  for (const RoundingPlace* const p : places_of(formula_))
    if ((places_ >> place++ & 1U) != 0)
      words += fmt::format("{}{}", words.empty() ? "" : ", ", p->words);
  return words.empty() ? "nothing is rounded before the value" : words;
}

Way declared_way(std::string_view formula, const DeclaredArithmetic& declared) {
  if (!narrow_storage(declared.values)) return {formula, 0};
  if (const auto said = pinned_places(declared.rounding, formula))
    return {formula, said->each, said->open};
  return {formula, 0, (1U << places_of(formula).size()) - 1};
}

std::vector<Way> ways_of(std::string_view formula, const DeclaredArithmetic& declared) {
  if (!narrow_storage(declared.values)) return {Way(formula, 0)};
  const std::uint32_t all = (1U << places_of(formula).size()) - 1;
  const PinnedPlaces of = pinned_places(declared.rounding, formula).value_or(PinnedPlaces{0, all});
  std::vector<Way> ways;
  for (std::uint32_t places = 0; places <= all; ++places)
    if ((places & ~of.open) == of.each) ways.emplace_back(formula, places);
  return ways;
}

void require_rounding(std::string_view text) {
  try {
    require_places(text);
  } catch (const Error& error) {
    throw Error("dump_attribute", error.message());
  }
}

}  // namespace shardproof::bounds
