#include "golden/cases/strata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "engine/run/plan.h"
#include "weights/base/error.h"
#include "weights/storage/generator.h"

namespace shardproof::cases::strata {
namespace {

constexpr std::array kRegimes{Regime::exact, Regime::f32};  // these strata take all other choices
constexpr std::array kLoops{Loop::none, Loop::one_way, Loop::both_full, Loop::both_half};
constexpr std::array kTori{TorusClass::one_chip, TorusClass::axis_of_1, TorusClass::equal,
                           TorusClass::two_equal, TorusClass::different};
constexpr std::array kBlocks{Block::parallel, Block::serial};
constexpr std::array kHeads{Heads::multiquery, Heads::grouped, Heads::multihead};

std::string_view to_string(TorusClass torus) {
  constexpr std::array<std::string_view, 5> kWords{"one chip", "an axis of 1", "equal axes",
                                                   "two equal axes", "different axes"};
  return kWords[static_cast<std::size_t>(torus)];
}

std::string_view to_string(Heads heads) {
  constexpr std::array<std::string_view, 3> kWords{"multiquery", "grouped", "multihead"};
  return kWords[static_cast<std::size_t>(heads)];
}

template <class T>
void shuffle(std::vector<T>& all, std::uint64_t stream) {
  for (std::size_t i = all.size(); i > 1; --i)
    std::swap(all[i - 1], all[counter_random(stream, "strata", i)[0] % i]);
}

/// Returns one half of the kinds: act and regime are equal or different depending on the other
/// three. So any four of the five take all combinations of their values.
std::vector<Kind> kinds_of(std::uint64_t round) {
  std::vector<Kind> all;
  for (std::size_t w = 0; w < kWeightFormats.size(); ++w)
    for (std::size_t l = 0; l < kLoops.size(); ++l)
      for (std::size_t t = 0; t < kTori.size(); ++t)
        for (std::size_t a = 0; a < kFloatFormats.size(); ++a)
          all.push_back({kWeightFormats[w], kFloatFormats[a], kRegimes[(a + w + l + t + round) % 2],
                         kLoops[l], kTori[t]});
  shuffle(all, round);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].block = kBlocks[i % 2];
    all[i].heads = kHeads[i / 2 % 3];
    all[i].chunked = i / 6 % 2 == 1;
  }
  return all;
}

/// Returns true if the strategy has programs for this kind of block.
bool partitions(const Strategy& strategy, Block block) {
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

/// Returns, for each shipped strategy, whether it has programs for this kind of block.
template <Block block>
const std::vector<bool>& shipped_that_run() {
  static const std::vector<bool> found = [] {
    std::vector<bool> all;
    for (const Strategy& s : all_strategies()) all.push_back(partitions(s, block));
    return all;
  }();
  return found;
}

/// Switches to serial blocks, which all shipped strategies run, if a strategy runs no others.
void settle_block(Stratum& stratum) {
  if (stratum.kind.block == Block::serial) return;
  for (const Strategy* one : {&stratum.prefill, &stratum.decode})
    if (!runs(*one, stratum.kind.block)) stratum.kind.block = Block::serial;
}

/// Adds the strata of one kind: strategies without a decode hand over to one that decodes, as do
/// `kPairs` more; the others run alone.
void add_strata(const Kind& kind, std::uint64_t stream, std::vector<Stratum>& strata) {
  constexpr std::size_t kPairs = 8;
  std::vector<Strategy> both, prefills;
  for (const Strategy& s : all_strategies()) (decodes(s) ? both : prefills).push_back(s);
  shuffle(both, stream);
  const auto add = [&](const Strategy& prefill, const Strategy& decode) {
    strata.push_back({prefill, decode, kind});
    settle_block(strata.back());
  };
  std::size_t next = 0;
  for (const Strategy& s : prefills) add(s, both[next++]);
  for (std::size_t pair = 0; pair < kPairs; ++pair, next += 2) add(both[next], both[next + 1]);
  for (; next < both.size(); ++next) add(both[next], both[next]);
}

/// Adds one field case for each kind, alternately with one strategy alone and with one that hands
/// over to another. There are more kinds than strategies, so each strategy occurs both ways.
void add_field_strata(const std::vector<Kind>& kinds, std::uint64_t stream,
                      std::vector<Stratum>& strata) {
  std::vector<Strategy> all = all_strategies(), both;
  shuffle(all, stream);
  for (const Strategy& s : all)
    if (decodes(s)) both.push_back(s);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Strategy& decode = both[(i / 2) % both.size()];
    Stratum stratum{i % 2 == 0 ? decode : all[(i / 2) % all.size()], decode, kinds[i]};
    // The two lists cycle differently; where they meet, the next strategy decodes.
    if (i % 2 == 1 && !stratum.hands_over()) stratum.decode = both[(i / 2 + 1) % both.size()];
    stratum.kind.regime = Regime::field;
    settle_block(stratum);
    strata.push_back(std::move(stratum));
  }
}

/// Returns the words of the five properties whose fours are cells.
std::array<std::string, 5> words_of(const Kind& kind) {
  return {fmt::format("weights={}", shardproof::to_string(kind.weights)),
          fmt::format("act={}", shardproof::to_string(kind.act)),
          fmt::format("regime={}", shardproof::to_string(kind.regime)),
          fmt::format("loop={}", shardproof::to_string(kind.loop)),
          std::string(to_string(kind.torus))};
}

std::string shape_words(const Kind& kind) {
  return fmt::format("{} {}{}", shardproof::to_string(kind.block), to_string(kind.heads),
                     kind.chunked ? " chunked" : "");
}

/// Returns every four of the five; in the field only the one without the regime.
std::vector<std::string> fours_of(const Kind& kind) {
  constexpr std::size_t kRegime = 2;
  const std::array<std::string, 5> words = words_of(kind);
  std::vector<std::string> all;
  for (std::size_t out = 0; out < words.size(); ++out) {
    if (kind.regime == Regime::field && out != kRegime) continue;
    std::vector<std::string_view> four;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (i != out) four.push_back(words[i]);
    all.push_back(fmt::format("{}", fmt::join(four, " ")));
  }
  return all;
}

std::string hand_over_words(Regime regime, bool hands_over) {
  return fmt::format("regime={} {}", shardproof::to_string(regime),
                     hands_over ? "hand-over" : "alone");
}

}  // namespace

Heads heads_of(const ModelConfig& model) {
  if (model.K == 1) return Heads::multiquery;
  return model.K == model.H ? Heads::multihead : Heads::grouped;
}

TorusClass class_of(const Torus& torus) {
  const std::array sizes{torus.size(Axis::x), torus.size(Axis::y), torus.size(Axis::z)};
  if (torus.chips() == 1) return TorusClass::one_chip;
  if (std::find(sizes.begin(), sizes.end(), 1) != sizes.end()) return TorusClass::axis_of_1;
  switch (std::set<int>(sizes.begin(), sizes.end()).size()) {
    case 1:
      return TorusClass::equal;
    case 2:
      return TorusClass::two_equal;
    default:
      return TorusClass::different;
  }
}

Kind kind_of(const Case& c) {
  return {c.numerics.weights, c.numerics.act, c.numerics.regime, c.numerics.loop,
          class_of(c.torus),  c.model.block,  heads_of(c.model), c.chunk < c.prompt};
}

std::string to_string(const Kind& kind) {
  return fmt::format("{} {}", fmt::join(words_of(kind), " "), shape_words(kind));
}

bool runs(const Strategy& strategy, Block block) {
  const std::vector<Strategy>& shipped = all_strategies();
  const auto at = std::find(shipped.begin(), shipped.end(), strategy);
  if (at == shipped.end()) return partitions(strategy, block);
  const auto& found = block == Block::serial ? shipped_that_run<Block::serial>()
                                             : shipped_that_run<Block::parallel>();
  return found[static_cast<std::size_t>(at - shipped.begin())];
}

const std::vector<Stratum>& all_strata(std::uint64_t round) {
  static const auto of = [](std::uint64_t which) {
    std::vector<Stratum> all;
    const std::vector<Kind> kinds = kinds_of(which);
    for (std::size_t i = 0; i < kinds.size(); ++i)
      add_strata(kinds[i], which * kinds.size() + i, all);
    add_field_strata(kinds, 2 * kinds.size() + which, all);
    // Spread a short run of cases over all strata.
    shuffle(all, which);
    return all;
  };
  static const std::array<std::vector<Stratum>, 2> rounds{of(0), of(1)};
  return rounds[round % 2];
}

const Stratum& stratum_of(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t n = all_strata(0).size();
  return all_strata(seed + index / n)[(seed % n * 101 + index % n) % n];
}

std::vector<std::string> cells_of(const Case& c) {
  const Kind kind = kind_of(c);
  const bool hands_over = !(c.prefill == c.decode) && c.gen > 1;
  std::vector<std::string> words = fours_of(kind);
  words.push_back(shape_words(kind));
  words.push_back(hand_over_words(kind.regime, hands_over));
  std::vector<std::string> cells;
  for (const std::string& one : words) cells.push_back(c.prefill.to_string() + " " + one);
  for (const std::string& one : hands_over ? words : std::vector<std::string>())
    cells.push_back(c.decode.to_string() + " " + one);
  return cells;
}

const std::vector<std::string>& legal_cells() {
  static const std::vector<std::string> legal = [] {
    std::set<std::string> fours;
    for (std::uint64_t round : {0U, 1U})
      for (const Kind& kind : kinds_of(round))
        for (std::string& four : fours_of(kind)) fours.insert(std::move(four));
    std::vector<std::string> all;
    for (const Strategy& s : all_strategies()) {
      const auto add = [&](const std::string& words) {
        all.push_back(s.to_string() + " " + words);
      };
      for (const std::string& four : fours) add(four);
      for (Block block : kBlocks)
        for (Heads heads : kHeads)
          for (bool chunked : {false, true})
            if (block == Block::serial || runs(s, block))
              add(shape_words({.block = block, .heads = heads, .chunked = chunked}));
      for (Regime regime : {Regime::exact, Regime::f32, Regime::field})
        for (bool hands_over : {false, true})
          // A prefill that hands nothing over would be a case of one token.
          if (hands_over || decodes(s)) add(hand_over_words(regime, hands_over));
    }
    return all;
  }();
  return legal;
}

}  // namespace shardproof::cases::strata
