#include "golden/trace/pair/tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "weights/base/detail/index.h"

namespace shardproof::dump {
namespace {

/// Calls see(row, position, id) for each token of a pass.
template <class See>
void each_token_of(const PassPlaces& places, const IntTensor& ids, See&& see) {
  for (std::int64_t b = 0; b < places.B; ++b)
    for (std::int64_t l = 0; l < places.L; ++l) {
      const std::int64_t position = places.positions[at(b * places.L + l)];
      if (position < 0) continue;
      for (const std::int64_t row : places.rows[at(b)])
        see(row, position, ids.data[at(b * places.L + l)]);
    }
}

}  // namespace

Tokens::ByPlace Tokens::read(const JudgedTrace& of, const TokenPlaces& places) {
  ByPlace tokens;
  const Passes passes = of.claim.source_case.passes();
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan pass = passes.at(i);
    each_token_of(places.at(pass.name), of.ids.at(pass.name),
                  [&](std::int64_t row, std::int64_t position, std::int32_t id) {
                    tokens[{row, position}] = {id, pass.phase == Phase::decode};
                  });
  }
  return tokens;
}

Tokens::Tokens(const JudgedTrace& a, const TokenPlaces& places_a, const JudgedTrace& b,
               const TokenPlaces& places_b)
    : tokens_{read(a, places_a), read(b, places_b)} {
  for (const auto& [place, in_a] : tokens_[0]) {
    const auto found = tokens_[1].find(place);
    if (found == tokens_[1].end()) continue;
    const Of& in_b = found->second;
    const bool known = in_a.id >= 0 && in_b.id >= 0;
    const bool prompt = !in_a.decoded && !in_b.decoded;
    both_ += prompt ? 1 : 0;
    if (in_a.id == in_b.id || !known) continue;
    const auto [first, is_new] = first_other_.emplace(place.first, place.second);
    if (!is_new) first->second = std::min(first->second, place.second);
    if (prompt && differ_++ == 0)
      first_ = fmt::format("row {} position {}: {} in A, {} in B", place.first, place.second,
                           in_a.id, in_b.id);
  }
  for (const bool of_b : {false, true}) {
    const JudgedTrace& of = of_b ? b : a;
    for (const auto& [pass, places] : of_b ? places_b : places_a) {
      OfPass& found = passes_[of_b ? 1 : 0][pass];
      each_token_of(
          places, of.ids.at(pass), [&](std::int64_t row, std::int64_t position, std::int32_t id) {
            const auto other = tokens_[of_b ? 0 : 1].find({row, position});
            if (other == tokens_[of_b ? 0 : 1].end()) return;
            const bool unknown = id < 0 || other->second.id < 0;
            found.unknown = found.unknown || unknown;
            if (id == other->second.id || unknown) return;
            found.differ.insert({row, position});
            const bool decoded =
                other->second.decoded || tokens_[of_b ? 1 : 0].at({row, position}).decoded;
            found.differ_in_prompt = found.differ_in_prompt || !decoded;
          });
      if (found.unknown) found.why = of.unknown.at(pass);
    }
  }
}

std::optional<std::string> Tokens::prompts() const {
  if (differ_ == 0) return std::nullopt;
  return fmt::format("{} of {} tokens differ, the first in {}", differ_, both_, first_);
}

std::string Tokens::reason(bool of_b, const std::string& pass) const {
  const auto found = passes_[of_b ? 1 : 0].find(pass);
  if (found == passes_[of_b ? 1 : 0].end()) return "";
  const OfPass& of = found->second;
  if (of.unknown) return of.why.empty() ? fmt::format("tokens of {} are not known", pass) : of.why;
  if (of.differ_in_prompt) return "the prompts differ";
  if (!std::includes(allowed_.begin(), allowed_.end(), of.differ.begin(), of.differ.end()))
    return fmt::format("tokens of {} differ", pass);
  return "";
}

bool Tokens::other(bool of_b, const std::string& pass) const {
  const std::int64_t last = place_of_pass(pass);
  return std::any_of(
      passes_[of_b ? 1 : 0].begin(), passes_[of_b ? 1 : 0].end(),
      [&](const auto& of) { return !of.second.differ.empty() && place_of_pass(of.first) <= last; });
}

bool Tokens::same_before(std::int64_t row, std::int64_t position) const {
  const auto found = first_other_.find(row);
  return found == first_other_.end() || found->second > position;
}

}  // namespace shardproof::dump
