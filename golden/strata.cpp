#include "golden/strata.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/run/plan.h"
#include "weights/error.h"
#include "weights/generator.h"

namespace shardproof::cases::strata {
namespace {

std::string cell(const Strategy& strategy, const Kind& kind, bool hands_over) {
  return fmt::format("{} {}{}", strategy.to_string(), to_string(kind),
                     hands_over ? " hand-over" : "");
}

const std::vector<Strategy>& legal_strategies(Block block) {
  static const auto of = [](Block wanted) {
    std::vector<Strategy> all;
    for (const Strategy& s : all_strategies())
      if (runs(s, wanted)) all.push_back(s);
    return all;
  };
  static const std::vector<Strategy> parallel = of(Block::parallel), serial = of(Block::serial);
  return block == Block::parallel ? parallel : serial;
}

/// The strategies of one kind's strata: each that can decode alone, then pairs with every one in.
std::vector<Stratum> strata_of(const Kind& kind, std::size_t turn) {
  std::vector<Strategy> both, prefills;
  for (const Strategy& s : legal_strategies(kind.block))
    (decodes(s) ? both : prefills).push_back(s);
  std::vector<Stratum> strata;
  for (const Strategy& s : both) strata.push_back({s, s, kind});
  // Turned, and every second kind the other way around: other pairs each time.
  std::rotate(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(turn * 5 % both.size()),
              both.end());
  if (turn % 2 == 1) std::reverse(both.begin(), both.end());
  const std::size_t distance = 1 + turn % (both.size() - 1);
  std::set<std::size_t> paired;
  std::size_t next = 0;
  const auto take = [&] {
    while (paired.contains(next)) ++next;
    paired.insert(next);
    return next;
  };
  for (const Strategy& s : prefills) strata.push_back({s, both[take()], kind});
  while (paired.size() < both.size()) {
    const std::size_t first = take();
    std::size_t second = (first + distance) % both.size();
    for (std::size_t n = 0; n < both.size() && (second == first || paired.contains(second)); ++n)
      second = (second + 1) % both.size();
    if (second == first) second = (first + 1) % both.size();
    paired.insert(second);
    strata.push_back({both[first], both[second], kind});
  }
  return strata;
}

}  // namespace

Heads heads_of(const ModelConfig& model) {
  if (model.K == 1) return Heads::multiquery;
  return model.K == model.H ? Heads::multihead : Heads::grouped;
}

const std::vector<Kind>& all_kinds() {
  static const std::vector<Kind> kinds = [] {
    std::vector<Kind> all;
    for (Block block : {Block::parallel, Block::serial})
      for (Heads heads : {Heads::multiquery, Heads::grouped, Heads::multihead})
        for (Regime regime : {Regime::exact, Regime::f32})
          for (ActType act : {ActType::f32, ActType::bf16})
            for (WeightType weights : {WeightType::f32, WeightType::bf16, WeightType::int8}) {
              // In chunks or at once by turns: each pair of values of the others meets both.
              const int turn = static_cast<int>(block) + static_cast<int>(heads) +
                               static_cast<int>(regime) + static_cast<int>(act) +
                               static_cast<int>(weights);
              all.push_back({block, heads, regime, act, weights, turn % 2 == 1});
            }
    return all;
  }();
  return kinds;
}

Kind kind_of(const Case& c) {
  return {c.model.block,  heads_of(c.model),  c.numerics.regime,
          c.numerics.act, c.numerics.weights, c.chunk < c.prompt};
}

std::string to_string(const Kind& kind) {
  constexpr const char* kHeads[] = {"multiquery", "grouped", "multihead"};
  return fmt::format("{} {} regime={} act={} weights={}{}", shardproof::to_string(kind.block),
                     kHeads[static_cast<std::size_t>(kind.heads)],
                     shardproof::to_string(kind.regime), shardproof::to_string(kind.act),
                     shardproof::to_string(kind.weights), kind.chunked ? " chunked" : "");
}

bool runs(const Strategy& strategy, Block block) {
  Case c;
  c.torus = Torus(1, 1, 1);
  c.model.block = block;
  try {
    partitioned(c, strategy, Phase::prefill);
    return true;
  } catch (const Error&) {
    return false;
  }
}

const std::vector<Stratum>& all_strata() {
  static const std::vector<Stratum> strata = [] {
    std::vector<Stratum> all;
    for (std::size_t i = 0; i < all_kinds().size(); ++i)
      for (Stratum& one : strata_of(all_kinds()[i], i)) all.push_back(std::move(one));
    // Shuffled, so that a short run of cases is spread over all.
    for (std::size_t i = all.size(); i > 1; --i)
      std::swap(all[i - 1], all[counter_random(0, "strata", i)[0] % i]);
    return all;
  }();
  return strata;
}

const Stratum& stratum_of(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t n = all_strata().size();
  return all_strata()[(seed % n * 101 + index % n) % n];
}

std::vector<std::string> cells_of(const Case& c) {
  const bool hands_over = !(c.prefill == c.decode) && c.gen > 1;
  std::vector<std::string> cells{cell(c.prefill, kind_of(c), hands_over)};
  if (hands_over) cells.push_back(cell(c.decode, kind_of(c), true));
  return cells;
}

const std::vector<std::string>& legal_cells() {
  static const std::vector<std::string> cells = [] {
    std::vector<std::string> all;
    for (const Strategy& s : all_strategies()) {
      const bool legal[] = {runs(s, Block::parallel), runs(s, Block::serial)};
      for (const Kind& kind : all_kinds())
        for (bool hands_over : {false, true})
          // A prefill alone that hands nothing over would be a case of one token.
          if (legal[kind.block == Block::serial] && (hands_over || decodes(s)))
            all.push_back(cell(s, kind, hands_over));
    }
    return all;
  }();
  return cells;
}

}  // namespace shardproof::cases::strata
