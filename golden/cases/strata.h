#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/run/case.h"

namespace shardproof::cases::strata {

/// How the key/value heads are shared.
enum class Heads { multiquery, grouped, multihead };
Heads heads_of(const ModelConfig& model);

/// What the axes of a torus are: one chip; an axis of 1, but several chips; all equal; two equal;
/// pairwise different.
enum class TorusClass { one_chip, axis_of_1, equal, two_equal, different };
TorusClass class_of(const Torus& torus);

/// What a random case is drawn to be, but for the strategies.
struct Kind {
  WeightType weights = WeightType::f32;
  ActType act = ActType::f32;
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

/// Whether the strategy has programs for blocks of this kind: mixed:1d-2d has none for parallel
/// ones.
bool runs(const Strategy& strategy, Block block);

/// A stratum: the strategies of one random case, and its kind.
struct Stratum {
  Strategy prefill, decode;
  Kind kind;
  bool hands_over() const { return !(prefill == decode); }
};

/// The strata of a round, of two rounds by turns, in a fixed order that looks random. The kinds of
/// a round are one half of weights × act × regime × loop × torus class, in which every four of
/// these have all their values together; block, heads and chunks go round with them. Of every kind
/// each strategy is in one case, alone or handing over to another, by turns. Besides, each kind is
/// in one case with the field as its regime.
const std::vector<Stratum>& all_strata(std::uint64_t round);

/// The stratum of a stream's case. The first all_strata(0).size() cases of a stream are one round,
/// the next the other.
const Stratum& stratum_of(std::uint64_t seed, std::uint64_t index);

/// The cells of a case, of each of its strategies: with every four of weights, act, regime, loop
/// and torus class; with block, heads and chunks; with the regime, alone or handing over. All five
/// of the former are 8,880 cells for 37 strategies, more than 3,000 cases with two strategies can
/// meet.
std::vector<std::string> cells_of(const Case& c);
/// Every cell that some legal case is in: a round meets them all.
const std::vector<std::string>& legal_cells();

}  // namespace shardproof::cases::strata
