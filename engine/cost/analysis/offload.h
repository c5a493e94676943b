#pragma once

#include <cstdint>

#include "engine/cost/chip/chip.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// Offloading on one chip: weights that do not fit into its memory are resident in the host's and
/// are streamed to the chip in each pass; caches and activations stay on the chip. Weights, reads
/// and FLOPs are those of a plan on one chip (engine/cost/work/work.h). Weights of which a pass
/// reads only a few rows, an untied embedding and RoPE's tables, are the first to go to the host,
/// and are never streamed.
struct OffloadSetting {
  ModelConfig model;
  NumberFormat weights = NumberFormat::bf16;
  NumberFormat act = NumberFormat::bf16;
  std::int64_t batch = 1, tokens = 1;
  std::int64_t context = 1;  ///< positions attended to, including the new ones
};

struct OffloadCost {
  double weight_bytes = 0.0;     ///< all weights
  double cache_bytes = 0.0;      ///< the whole context of all sequences
  double resident_bytes = 0.0;   ///< weights in the chip's own memory
  double host_bytes = 0.0;       ///< weights in the host's memory
  double streamed_bytes = 0.0;   ///< part of host_bytes sent to the chip in each pass
  double host_seconds = 0.0;     ///< streaming to the chip
  double memory_seconds = 0.0;   ///< weights and caches at the chip's memory bandwidth
  double compute_seconds = 0.0;  ///< FLOPs that no run can skip, at peak

  /// The share of the weights in the chip's memory: 1 if the host holds none.
  double fraction() const { return resident_bytes / weight_bytes; }
  /// The time of a pass: the maximum of the three.
  double seconds() const;
  double seconds_without() const;  ///< if the chip's memory held all weights
};

/// Throws Error: "offload_c1" (the caches alone do not fit; names the longest context, otherwise
/// the largest batch, that does), "offload_c2" (the host's memory does not hold the weights, or
/// there is no host); what pass_of, WorkFormulas and Chip::peak throw.
OffloadCost offload_cost(const OffloadSetting& setting, const Chip& chip);

}  // namespace shardproof::cost
