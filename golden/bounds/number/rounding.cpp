#include "golden/bounds/number/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "weights/base/detail/words.h"

namespace shardproof::bounds {
namespace {

/// Returns the rounding places of a formula, in the table's order.
std::vector<const RoundingPlace*> places_of(std::string_view formula) {
  std::vector<const RoundingPlace*> of;
  for (const RoundingPlace& place : rounding_places())
    if (place.formula == formula) of.push_back(&place);
  return of;
}

[[noreturn]] void reject(std::string_view text, const std::string& why) {
  throw Error("dump_attribute", fmt::format("rounding={:?}: {}", text.substr(0, 200), why));
}

std::string names(const std::vector<std::string_view>& all) {
  std::string list;
  for (const std::string_view one : all) list += fmt::format("{}{}", list.empty() ? "" : ", ", one);
  return list;
}

std::uint32_t bit_of(std::string_view text, std::string_view formula, std::string_view key) {
  const auto places = places_of(formula);
  std::vector<std::string_view> legal;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i]->key == key) return 1U << i;
    legal.push_back(places[i]->key);
  }
  reject(text, fmt::format("{:?} is not a place of {}; legal: {}", key, formula, names(legal)));
}

/// Returns the set of places that a declaration pins for a formula, as bits; nullopt if it leaves
/// them open. A later set or formula overrides an earlier one.
std::optional<std::uint32_t> pinned(std::string_view text, std::string_view formula) {
  std::optional<std::uint32_t> said;
  for (const std::string_view word : split(text, ",")) {
    if (word == "any" || word.empty()) continue;
    const std::size_t colon = word.find(':');
    if (colon == std::string_view::npos) {
      if (word != "spec" && word != "hf")
        reject(text,
               fmt::format("{:?} is not a set; legal: any, spec, hf, or FORMULA:PLACES", word));
      std::uint32_t places = 0;
      const auto of = places_of(formula);
      for (std::size_t i = 0; i < of.size(); ++i)
        if (word == "hf" && of[i]->hf) places |= 1U << i;
      said = places;
      continue;
    }
    const std::string_view named = word.substr(0, colon), list = word.substr(colon + 1);
    if (places_of(named).empty()) {
      std::vector<std::string_view> legal;
      for (const RoundingPlace& p : rounding_places())
        if (legal.empty() || legal.back() != p.formula) legal.push_back(p.formula);
      reject(text, fmt::format("{:?} is not a formula; legal: {}", named, names(legal)));
    }
    std::uint32_t places = 0;
    if (!list.empty())
      for (const std::string_view key : split(list, "+")) places |= bit_of(text, named, key);
    if (named == formula) said = places;
  }
  return said;
}

}  // namespace

const std::vector<RoundingPlace>& rounding_places() {
  static const std::vector<RoundingPlace> places{
      {"embed", "scale", "the scale is rounded", true},
      {"norm", "mu", "mu is rounded", false},
      {"norm", "d", "x - mu is rounded", false},
      {"norm", "r", "r is rounded", false},
      {"norm", "xr", "x·r is rounded", true},
      {"norm", "xrg", "x·r·g is rounded before the bias", false},
      {"rope", "tables", "sines and cosines are rounded", true},
      {"rope", "products", "both products are rounded", true},
      {"score", "qk", "q·k is rounded before the scale", true},
      {"exp", "difference", "s - max is rounded", false},
      {"attn", "qk", "q·k is rounded before the scale", true},
      {"attn", "scores", "scores are rounded", true},
      {"attn", "exp", "exp is rounded before the product with v", false},
      {"attn", "probs", "probabilities are rounded", true},
      {"hidden", "inner", "each operation of the activation is rounded", true},
      {"hidden", "act", "the activation is rounded", true},
      {"sum", "s", "the sum is rounded before scale and bias", false},
      {"out", "each", "each addition is rounded", true},
  };
  return places;
}

std::string_view formula_of(std::string_view name) {
  if (name == "norm" || name == "norm2" || name == "final_norm") return "norm";
  if (name == "q_rot" || name == "k_rot") return "rope";
  if (name == "mid") return "out";
  for (const std::string_view own : {"embed", "score", "exp", "attn", "hidden", "out"})
    if (name == own) return own;
  for (const std::string_view sum :
       {"q", "k", "v", "gate", "up", "attn_out", "ffn_out", "block_out", "logits"})
    if (name == sum) return "sum";
  return "";
}

Rounds Way::rounds(std::string_view key) const {
  const auto places = places_of(formula_);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i]->key == key)
      return (open_ >> i & 1U) != 0     ? Rounds::some
             : (places_ >> i & 1U) != 0 ? Rounds::each
                                        : Rounds::none;
  return Rounds::none;
}

std::string Way::words() const {
  std::string words;
  const auto places = places_of(formula_);
  for (std::size_t i = 0; i < places.size(); ++i)
    if ((places_ >> i & 1U) != 0)
      words += fmt::format("{}{}", words.empty() ? "" : ", ", places[i]->words);
  return words.empty() ? "nothing is rounded before the value" : words;
}

Way declared_way(std::string_view formula, const DeclaredArithmetic& declared) {
  if (!narrow_storage(declared.values)) return {formula, 0};
  if (const auto said = pinned(declared.rounding, formula)) return {formula, *said};
  return {formula, 0, (1U << places_of(formula).size()) - 1};
}

std::vector<Way> ways_of(std::string_view formula, const DeclaredArithmetic& declared) {
  if (!narrow_storage(declared.values)) return {Way(formula, 0)};
  if (const auto said = pinned(declared.rounding, formula)) return {Way(formula, *said)};
  std::vector<Way> ways;
  for (std::uint32_t of = 0; of < 1U << places_of(formula).size(); ++of)
    ways.emplace_back(formula, of);
  return ways;
}

void require_rounding(std::string_view text) { pinned(text, ""); }

}  // namespace shardproof::bounds
