#pragma once

#include <cstdint>

#include "engine/cost/chip/chip.h"
#include "engine/cost/work/bounds.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// The layers cut into stages, each on chips of its own; a batch cut into microbatches, which go
/// through the stages one behind the other. `steps` passes follow each other: a microbatch begins
/// its next one when it has come out of the last stage, as the decode steps of one text must.
struct Pipeline {
  std::int64_t stages = 1;        ///< p
  std::int64_t microbatches = 1;  ///< m
  std::int64_t steps = 1;         ///< s

  /// From the first microbatch's begin to the last one's end, in units of one microbatch on one
  /// stage: (s − 1)·max(m, p) + m + p − 1.
  double slots() const;
  /// The share of that time in which a stage waits: 1 − s·m/slots, (p − 1)/(m + p − 1) of one pass.
  double bubble() const;
};

/// A model in stages, each of which is partitioned over `tensor` chips as ws1d:heads is: heads and
/// F over the chips, activations reduced over them behind each block. K over as many of them as
/// whole heads go into, gcd(tensor, K); the other chips hold and compute the same keys and values.
struct PipelineSetting {
  ModelConfig model;
  WeightType weights = WeightType::bf16;
  ActType act = ActType::bf16;
  std::int64_t batch = 1;    ///< sequences, all microbatches together
  std::int64_t tokens = 1;   ///< new positions of each in a pass
  std::int64_t context = 1;  ///< positions attended to, the new ones among them
  std::int64_t tensor = 1;   ///< chips of a stage
  Pipeline pipeline;
};

/// What a pipeline costs: each slot is taken as long as on the stage that has most layers, and the
/// unembedding counts to it.
struct PipelineCost {
  std::int64_t chips = 1;
  /// One interconnect joins all chips. Else it does those of a stage, and activations are taken to
  /// go from one stage to the next as fast as over it.
  bool joined = true;
  std::int64_t layers_of_stage = 1;  ///< ⌈layers/p⌉
  Seconds slot;                      ///< of one microbatch on one stage, without what it sends on
  double transfer = 0.0;             ///< of its activations to the next stage; 0 of one stage
  double bubble = 0.0;
  double weight_bytes = 0.0;  ///< on one chip of the largest stage
  double cache_bytes = 0.0;   ///< on one chip, of all microbatches
  double lower = 0.0;         ///< of all steps, transfers hidden and each slot overlapped perfectly
  double additive = 0.0;      ///< of all steps, nothing hidden

  bool fits(const Chip& chip) const { return weight_bytes + cache_bytes <= chip.hbm; }
};

/// Throws Error: "pipeline_c1" (a number below 1, or tokens above the context), "pipeline_c2" (more
/// stages than layers), "pipeline_c3" (microbatches that do not divide the batch, or tensor that
/// does not divide H and F), "pipeline_c4" (more chips in a stage than the chip's max_chips, or
/// stages of a chip without an interconnect); what Chip::peak throws.
PipelineCost pipeline_cost(const PipelineSetting& setting, const Chip& chip);

}  // namespace shardproof::cost
