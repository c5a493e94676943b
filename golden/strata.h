#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/run/case.h"

namespace shardproof::cases::strata {

/// How the key/value heads are shared.
enum class Heads { multiquery, grouped, multihead };
Heads heads_of(const ModelConfig& model);

/// What a random case is drawn to be, but for the strategies; every combination is one.
struct Kind {
  Block block = Block::parallel;
  Heads heads = Heads::multiquery;
  Regime regime = Regime::exact;
  ActType act = ActType::f32;
  WeightType weights = WeightType::f32;
  bool chunked = false;
  bool operator==(const Kind&) const = default;
};
const std::vector<Kind>& all_kinds();
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

/// The strata, in a fixed order that looks random. Between them every cell is met: of every kind,
/// every strategy by itself, and every strategy in a pair with another, as prefill or as decode.
/// Pairs differ from kind to kind.
const std::vector<Stratum>& all_strata();

/// The stratum of a stream's case: any all_strata().size() cases in a row have each of them once.
const Stratum& stratum_of(std::uint64_t seed, std::uint64_t index);

/// A cell: a strategy, a kind, and whether the case has a hand-over. A case is in one cell, or in
/// two where it hands over.
std::vector<std::string> cells_of(const Case& c);
/// Every cell that some legal case is in.
const std::vector<std::string>& legal_cells();

}  // namespace shardproof::cases::strata
