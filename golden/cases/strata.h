#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/run/case.h"

namespace shardproof::cases::strata {

/// How query heads share key/value heads.
enum class Heads { multiquery, grouped, multihead };
Heads heads_of(const ModelConfig& model);

/// Classes of tori: one chip; several chips with an axis of 1; all axes equal; two equal; pairwise
/// different.
enum class TorusClass { one_chip, axis_of_1, equal, two_equal, different };
TorusClass class_of(const Torus& torus);

/// The drawn properties of a random case, apart from its strategies.
struct Kind {
  NumberFormat weights = NumberFormat::f32;
  NumberFormat act = NumberFormat::f32;
  Regime regime = Regime::exact;
  Loop loop = Loop::none;
  TorusClass torus = TorusClass::one_chip;
  Block block = Block::parallel;
  Heads heads = Heads::multiquery;
  bool chunked = false;
  bool operator==(const Kind&) const = default;
};
Kind kind_of(const Case& c);
std::string to_string(const Kind& kind);

/// Returns true if the strategy has programs for blocks of this kind: mixed:1d-2d has none for
/// parallel blocks.
bool runs(const Strategy& strategy, Block block);

/// A stratum: the strategies of one random case, and its kind.
struct Stratum {
  Strategy prefill, decode;
  Kind kind;
  bool hands_over() const { return !(prefill == decode); }
};

/// The strata of a round, in a fixed pseudo-random order; two rounds alternate. The kinds of a
/// round are one half of weights × act × regime × loop × torus class, chosen so that any four of
/// these take all combinations of their values; block, heads and chunks cycle through them. Each
/// kind has one case for each strategy, which alternates between running alone and handing over to
/// another. In addition, each kind has one case with regime=field.
const std::vector<Stratum>& all_strata(std::uint64_t round);

/// Returns the stratum of case `index` of a stream. The first all_strata(0).size() cases of a
/// stream are one round, the next ones the other.
const Stratum& stratum_of(std::uint64_t seed, std::uint64_t index);

/// Returns the cells of a case, for each of its strategies: with every four of weights, act,
/// regime, loop and torus class; with block, heads and chunks; with the regime, alone or handing
/// over. All five of the former together would be 8,880 cells for 37 strategies, more than 3,000
/// cases with two strategies can meet.
std::vector<std::string> cells_of(const Case& c);
/// Returns every cell that some legal case is in; a round covers them all.
const std::vector<std::string>& legal_cells();

}  // namespace shardproof::cases::strata
