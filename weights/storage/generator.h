#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "weights/base/error.h"
#include "weights/model/prefix.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Returns four 32-bit words that depend on (seed, stream name, index) only, the same on every
/// machine: Philox4x32-10 with the seed as key and the index and a 64-bit FNV-1a hash of the name
/// as counter.
std::array<std::uint32_t, 4> counter_random(std::uint64_t seed, std::string_view stream,
                                            std::uint64_t index);

/// range(word, low, high) of docs/spec.md section 5: an integer from low to high, nearly uniform if
/// high − low is far below 2^32.
std::int64_t ranged(std::uint32_t word, std::int64_t low, std::int64_t high);

/// Generates weights from a seed: integers times powers of two, exactly representable in f32; libm
/// is used only for the RoPE tables ((float)cos, (float)sin of pos·theta^(−2j/Q) in f64). A base-2
/// model's weights are the plain model's, folded (weights/storage/fold.h). Channel scales spread
/// over about 10×, so that a permuted or dropped shard is visible (docs/spec.md section 2). Weights
/// of more than `room` bytes are generated when they are asked for. Throws what validate(config)
/// throws.
Weights generate_weights(const ModelConfig& config, std::uint64_t seed,
                         std::size_t room = Weights::kRoom);

/// Generates a case's prompt, int32 [batch, length]: Philox(seed, "prompt", row, position) mod V;
/// rows differ. Ids of a prefix are Philox(seed, "prefix", its number, position) mod V in all its
/// rows. Throws Error("prompt_size", ...) unless batch and length are from 1 to 2^31 - 1.
IntTensor generate_prompt(const ModelConfig& config, std::uint64_t seed, std::int64_t batch,
                          std::int64_t length, const SharedPrefix& prefix = {});

/// Generates the ids of the field regime (docs/field.md section 1.5), int32 [batch, positions]: a
/// permutation of the vocabulary, repeated after its last id; all different while batch·positions ≤
/// V, otherwise different at each position while batch ≤ V. Rows that share a prefix have there the
/// ids of the first of them. Throws what generate_prompt throws.
IntTensor generate_ids(const ModelConfig& config, std::uint64_t seed, std::int64_t batch,
                       std::int64_t positions, const SharedPrefix& prefix = {});

}  // namespace shardproof
