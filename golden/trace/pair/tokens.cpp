#include "golden/trace/pair/tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "weights/base/detail/index.h"

namespace shardproof::dump {
namespace {

/// Calls see(row, position, place in the pass) for each token of a pass.
template <class See>
void each_token_of(const PassPlaces& places, See&& see) {
  for (std::int64_t b = 0; b < places.B; ++b)
    for (std::int64_t l = 0; l < places.L; ++l) {
      const std::size_t i = at(b * places.L + l);
      if (places.own[i] < 0) continue;
      for (const std::int64_t row : places.rows[at(b)]) see(row, places.own[i], i);
    }
}

}  // namespace

Tokens::ByPlace Tokens::read(const JudgedTrace& of, const TokenPlaces& places) {
  ByPlace tokens;
  const Passes passes = of.claim.source_case.passes();
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan pass = passes.at(i);
    const PassPlaces& in = places.at(pass.name);
    const IntTensor& ids = of.ids.at(pass.name);
    each_token_of(in, [&](std::int64_t row, std::int64_t position, std::size_t at_token) {
      tokens[{row, position}] = {ids.data[at_token], pass.phase == Phase::decode,
                                 in.positions[at_token]};
    });
  }
  std::map<std::int64_t, std::int64_t> last;  // by row, of those that are matched
  for (const auto& [place, token] : tokens)
    if (token.matched >= 0) last[place.first] = place.second;
  std::erase_if(tokens, [&](const auto& token) {
    const auto found = last.find(token.first.first);
    return found == last.end() || token.first.second > found->second;
  });
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
      each_token_of(places, [&](std::int64_t row, std::int64_t position, std::size_t) {
        const auto own = tokens_[of_b ? 1 : 0].find({row, position});
        const auto other = tokens_[of_b ? 0 : 1].find({row, position});
        if (own == tokens_[of_b ? 1 : 0].end() || other == tokens_[of_b ? 0 : 1].end()) return;
        const bool unknown = own->second.id < 0 || other->second.id < 0;
        found.unknown = found.unknown || unknown;
        if (own->second.id == other->second.id || unknown) return;
        found.differ.insert({row, position});
        const bool decoded = other->second.decoded || own->second.decoded;
        found.differ_in_prompt = found.differ_in_prompt || !decoded;
      });
      if (found.unknown) found.why = of.unknown.at(pass);
    }
  }
  find_shifted();
}

void Tokens::find_shifted() {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> in_a;  // by matched position
  for (const auto& [place, token] : tokens_[0])
    if (token.matched >= 0) in_a[{place.first, token.matched}] = place.second;
  for (const auto& [place, token] : tokens_[1]) {
    const auto found = in_a.find({place.first, token.matched});
    if (token.matched < 0 || found == in_a.end() || found->second == place.second || shifted_)
      continue;
    shifted_ = fmt::format("row {} position {} is {} of its run in A, {} in B", place.first,
                           token.matched, found->second, place.second);
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
  return reason(of, pass);
}

std::string Tokens::reason_before(bool of_b, const std::string& pass) const {
  const std::int64_t last = place_of_pass(pass);
  for (const auto& [name, of] : passes_[of_b ? 1 : 0])
    if (const std::string why = reason(of, name); !why.empty() && place_of_pass(name) <= last)
      return why;
  return "";
}

std::string Tokens::reason(const OfPass& of, const std::string& pass) const {
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
