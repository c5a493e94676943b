#pragma once

#include <cstdint>

#include "engine/cost/chip/chip.h"
#include "engine/cost/work/bounds.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// A pipeline: the layers are cut into stages, each on its own chips, and a batch into microbatches
/// that pass through the stages in sequence. `steps` passes follow each other: a microbatch starts
/// its next one after the last stage, as the decode steps of a text must.
struct Pipeline {
  std::int64_t stages = 1;        ///< p
  std::int64_t microbatches = 1;  ///< m
  std::int64_t steps = 1;         ///< s

  /// Time from the first microbatch's start to the last one's end, in units of one microbatch on
  /// one stage: (s − 1)·max(m, p) + m + p − 1.
  double slots() const;
  /// The share of slots() in which a stage idles: 1 − s·m/slots, (p − 1)/(m + p − 1) for one pass.
  double bubble() const;
};

/// A model in stages, each partitioned over `tensor` chips like ws1d:heads: heads and F are sharded
/// over the chips, and activations are all-reduced over them after each block. K is sharded over
/// gcd(tensor, K) chips, so that heads stay whole; the others hold and compute replicas.
struct PipelineSetting {
  ModelConfig model;
  NumberFormat weights = NumberFormat::bf16;
  NumberFormat act = NumberFormat::bf16;
  std::int64_t batch = 1;    ///< sequences, all microbatches together
  std::int64_t tokens = 1;   ///< new positions per sequence in a pass
  std::int64_t context = 1;  ///< positions attended to, including the new ones
  std::int64_t tensor = 1;   ///< chips of a stage
  Pipeline pipeline;
};

/// The cost of a pipeline. Every slot takes as long as on the largest stage plus the unembedding.
struct PipelineCost {
  std::int64_t chips = 1;
  /// True if one interconnect joins all chips. Otherwise it joins only those of a stage, and
  /// transfers between stages are assumed to run at its speed.
  bool joined = true;
  std::int64_t layers_of_stage = 1;  ///< ⌈layers/p⌉
  Seconds slot;                      ///< one microbatch on one stage, without transfers
  double transfer = 0.0;             ///< seconds of activations to the next stage; 0 for one stage
  double bubble = 0.0;
  double weight_bytes = 0.0;  ///< on one chip of the largest stage
  double cache_bytes = 0.0;   ///< on one chip, all microbatches
  double lower = 0.0;         ///< all steps; transfers hidden, each slot overlapped perfectly
  double additive = 0.0;      ///< all steps; nothing hidden

  bool fits(const Chip& chip) const { return weight_bytes + cache_bytes <= chip.hbm; }
};

/// Throws Error: "pipeline_c1" (a number below 1, or tokens above the context), "pipeline_c2" (more
/// stages than layers), "pipeline_c3" (microbatches that do not divide the batch, or tensor that
/// does not divide H and F), "pipeline_c4" (more chips in a stage than the chip's max_chips, or
/// stages of a chip without an interconnect); what Chip::peak throws.
PipelineCost pipeline_cost(const PipelineSetting& setting, const Chip& chip);

}  // namespace shardproof::cost
