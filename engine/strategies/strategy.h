#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/torus.h"
#include "weights/error.h"
#include "weights/model_config.h"

namespace shardproof {

/// How the feed-forward layer is partitioned (paper §3.2).
enum class FfnLayout { ws1d, ws2d, wg_xyz };
/// How attention is partitioned (paper §3.3): over heads, or over the batch (`B_zyx`).
enum class AttentionLayout { heads, batch };

/// A partitioning of one phase, e.g. `ws2d:batch`.
struct Strategy {
  FfnLayout ffn = FfnLayout::ws2d;
  AttentionLayout attention = AttentionLayout::heads;

  /// Reads "ws2d:batch"; ws1d and ws2d without attention take heads. Throws Error("strategy_c1",
  /// ...) on an unknown word, naming the nearest, and Error("strategy_c2", ...) on a pair that is
  /// not built (wg-xyz alone, wg-xyz:heads), naming the legal one.
  static Strategy parse(std::string_view text);
  std::string to_string() const;
  bool operator==(const Strategy&) const = default;
};

/// Every strategy that is built, in the order of the paper.
const std::vector<Strategy>& all_strategies();

/// "2D weight-stationary, attention over the batch".
std::string description(const Strategy& strategy);

/// A dim that a strategy cuts over the chips along `axes`, which must divide it. 'B' is the batch.
struct CutDim {
  char dim;
  Axes axes;
};
/// Every dim that must divide, in the order E F H V B.
std::vector<CutDim> cut_dims(const Strategy& strategy);
/// "XYZ" of xyz: the product of the sizes, as messages write it.
std::string product_name(const Axes& axes);

/// The smallest batch the strategy can run on: XYZ with attention over batch, else 1.
std::int64_t smallest_batch(const Strategy& strategy, const Torus& torus);

/// Throws Error("strategy_c3", ...) if dims are not divisible as the strategies of the phases need:
/// all of them at once, with the nearest legal model (and batch); Error("strategy_c4", ...) if the
/// batch alone is too small.
void require_legal(const std::vector<Strategy>& phases, const ModelConfig& config,
                   const Torus& torus, std::int64_t batch);
void require_legal(const Strategy& strategy, const ModelConfig& config, const Torus& torus,
                   std::int64_t batch);

/// The axes that shard the K/V heads over the chips: the longest prefix of zyx, of more than one
/// chip, whose product divides K; empty for multiquery.
Axes kv_axes(const ModelConfig& config, const Torus& torus);

}  // namespace shardproof
