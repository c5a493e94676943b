#include "weights/model/rounding_places.h"

#include <fmt/format.h>

#include <string>

#include "weights/base/detail/words.h"

namespace shardproof {
namespace {

[[noreturn]] void reject(std::string_view text, const std::string& why) {
  throw Error("rounding_places", fmt::format("rounding={:?}: {}", text.substr(0, 200), why));
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

}  // namespace

const std::vector<RoundingPlace>& rounding_places() {
  static const std::vector<RoundingPlace> places{
      {"embed", "scale", "the scale is rounded", HfRounds::yes},
      {"norm", "mu", "mu is rounded", HfRounds::no},
      {"norm", "d", "x - mu is rounded", HfRounds::no},
      {"norm", "r", "r is rounded", HfRounds::no},
      {"norm", "xr", "x·r is rounded", HfRounds::yes},
      {"norm", "xrg", "x·r·g is rounded before the bias", HfRounds::no},
      {"rope", "tables", "sines and cosines are rounded", HfRounds::yes},
      {"rope", "products", "both products are rounded", HfRounds::yes},
      {"score", "qk", "q·k is rounded before the scale", HfRounds::yes},
      {"exp", "difference", "s - max is rounded", HfRounds::no},
      {"attn", "qk", "q·k is rounded before the scale", HfRounds::yes},
      {"attn", "scores", "scores are rounded", HfRounds::yes},
      {"attn", "exp", "exp is rounded before the product with v", HfRounds::no},
      {"attn", "probs", "probabilities are rounded", HfRounds::yes},
      {"hidden", "inner", "each operation of the activation is rounded", HfRounds::open},
      {"hidden", "act", "the activation is rounded", HfRounds::yes},
      {"sum", "s", "the sum is rounded before scale and bias", HfRounds::no},
      {"out", "each", "each addition is rounded", HfRounds::yes},
  };
  return places;
}

std::vector<const RoundingPlace*> places_of(std::string_view formula) {
  std::vector<const RoundingPlace*> of;
  for (const RoundingPlace& place : rounding_places())
    if (place.formula == formula) of.push_back(&place);
  return of;
}

std::optional<PinnedPlaces> pinned_places(std::string_view text, std::string_view formula) {
  std::optional<PinnedPlaces> said;
  for (const std::string_view word : split(text, ",")) {
    if (word == "any" || word.empty()) continue;
    const std::size_t colon = word.find(':');
    if (colon == std::string_view::npos) {
      if (word != "spec" && word != "hf")
        reject(text,
               fmt::format("{:?} is not a set; legal: any, spec, hf, or FORMULA:PLACES", word));
      said.emplace();
      const auto of = places_of(formula);
      for (std::size_t i = 0; i < of.size() && word == "hf"; ++i)
        if (of[i]->hf != HfRounds::no)
          (of[i]->hf == HfRounds::open ? said->open : said->each) |= 1U << i;
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
    if (named == formula) said = PinnedPlaces{places, 0};
  }
  return said;
}

bool is_place_of(std::string_view declaration, std::string_view formula, std::string_view key) {
  const auto places = pinned_places(declaration, formula);
  const auto of = places_of(formula);
  for (std::size_t i = 0; places && i < of.size(); ++i)
    if (of[i]->key == key) return ((places->each | places->open) >> i & 1U) != 0;
  return false;
}

void require_places(std::string_view declaration) { pinned_places(declaration, ""); }

}  // namespace shardproof
