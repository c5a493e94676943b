#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/numeric/detail/natural.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/sampling.h"

namespace shardproof::oracle {

// Sampling of one row over the whole vocabulary (docs/spec.md section 2.10), by sorting.

/// e of every token, of logits in this unit. Throws Error("oracle_finite", ...) where t is not
/// finite.
std::vector<float> chances(std::span<const float> logits, double temperature, double unit = 1.0);

/// The k-th largest of them; k = 0: the least.
float top_k_floor(std::span<const float> e, std::int64_t k);
/// The largest of them from which on the exact sum is at least p times that of all.
float top_p_floor(std::span<const float> e, double p);
/// Those that are at least the floor; +0 for the others.
std::vector<float> kept(std::span<const float> e, float floor);

/// What the rounds of a search that found this floor added up: a round sets a bit below those of
/// the floor that are known by then, the highest first. How many elements are at least that; and
/// kSumWords words of their exact sum, that of all before the first round.
std::vector<std::uint32_t> search_counts(std::span<const float> e, float floor);
std::vector<std::uint32_t> search_sums(std::span<const float> e, float floor);

/// The exact sum, in units of 2^-149; and its words.
Natural sum_of_chances(std::span<const float> e);
std::vector<std::uint32_t> words_of(const Natural& sum);

/// The token on which r/2^24 of the sum falls, and that of the row's own random number.
std::int32_t drawn_at(std::span<const float> e, std::uint32_t r);
std::int32_t drawn(std::span<const float> e, std::uint64_t seed, const Draw& draw);

/// The token of each row of logits [BV]: int32 [B, 1], what the next pass reads.
IntTensor sampled(const Tensor& logits, const Draws& draws);

}  // namespace shardproof::oracle
