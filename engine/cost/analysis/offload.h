#pragma once

#include <cstdint>

#include "engine/cost/chip/chip.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// Weights that do not fit into the memory of one chip rest in its host's, and are streamed to the
/// chip in each pass (one chip; its caches and what is computed stay on it). Weights, reads and
/// FLOPs are those of a plan on one chip (engine/cost/work/work.h): what a pass reads a few rows
/// of, an untied embedding and RoPE's tables, rests in the host first and is never streamed.
struct OffloadSetting {
  ModelConfig model;
  WeightType weights = WeightType::bf16;
  ActType act = ActType::bf16;
  std::int64_t batch = 1, tokens = 1;
  std::int64_t context = 1;  ///< positions attended to, the new ones among them
};

struct OffloadCost {
  double weight_bytes = 0.0;     ///< of all weights
  double cache_bytes = 0.0;      ///< of the whole context, for all sequences
  double resident_bytes = 0.0;   ///< of the weights, in the chip's own memory
  double host_bytes = 0.0;       ///< of the weights, in the host's
  double streamed_bytes = 0.0;   ///< of those, to the chip in each pass
  double host_seconds = 0.0;     ///< of the stream
  double memory_seconds = 0.0;   ///< weights and caches at the bandwidth of the chip's memory
  double compute_seconds = 0.0;  ///< FLOPs at peak that no run does without

  /// The share of the weights that fits: 1 where the host has none.
  double fraction() const { return resident_bytes / weight_bytes; }
  /// A pass takes at least the longest of the three.
  double seconds() const;
  double seconds_without() const;  ///< if the chip's memory were large enough
};

/// Throws Error: "offload_c1" (caches alone that do not fit, with the longest context or else the
/// largest batch that does),
/// "offload_c2" (weights that the host's memory does not hold, or no host); what pass_of,
/// WorkFormulas and Chip::peak throw.
OffloadCost offload_cost(const OffloadSetting& setting, const Chip& chip);

}  // namespace shardproof::cost
