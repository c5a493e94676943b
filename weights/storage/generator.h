#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "weights/base/error.h"
#include "weights/model/prefix.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Four 32-bit words that depend on (seed, stream name, index) alone: Philox4x32-10 with the seed
/// as key and the index and a 64-bit FNV-1a hash of the name as counter. The same on every machine.
std::array<std::uint32_t, 4> counter_random(std::uint64_t seed, std::string_view stream,
                                            std::uint64_t index);

/// range(word, low, high) of docs/spec.md section 5: an integer from low to high, nearly uniform
/// where high − low is far below 2^32.
std::int64_t ranged(std::uint32_t word, std::int64_t low, std::int64_t high);

/// Weights from a seed: integers times powers of two, exactly representable in f32, no libm but for
/// the RoPE tables ((float)cos, (float)sin of pos·theta^(−2j/Q) in f64). Those of a base-2 model
/// are the plain model's, folded (weights/storage/fold.h). Channel scales spread over about 10×, so
/// that a permuted or dropped shard shows (docs/spec.md section 2). Throws what validate(config)
/// throws.
Weights generate_weights(const ModelConfig& config, std::uint64_t seed);

/// Case prompts: int32 [batch, length], Philox(seed, "prompt", row, position) mod V; rows differ.
/// Of a prefix the ids are Philox(seed, "prefix", its number, position) mod V, in all rows that
/// have it. Throws Error("prompt_size", ...) unless batch and length are from 1 to 2^31 - 1.
IntTensor generate_prompt(const ModelConfig& config, std::uint64_t seed, std::int64_t batch,
                          std::int64_t length, const SharedPrefix& prefix = {});

/// The ids that the field regime looks up (docs/field.md section 1.5): int32 [batch, positions],
/// from a permutation of the vocabulary, begun anew after its last id; all different while
/// batch·positions ≤ V, and else at each position while batch ≤ V. Rows that share a prefix have
/// there the ids of the first of them. Throws what generate_prompt throws.
IntTensor generate_ids(const ModelConfig& config, std::uint64_t seed, std::int64_t batch,
                       std::int64_t positions, const SharedPrefix& prefix = {});

}  // namespace shardproof
