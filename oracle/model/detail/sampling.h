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

/// Returns e of every token for logits in this unit. Throws Error("oracle_finite", ...) if t is not
/// finite.
std::vector<float> chances(std::span<const float> logits, double temperature, double unit = 1.0);

/// Returns the k-th largest e; the smallest if k = 0.
float top_k_floor(std::span<const float> e, std::int64_t k);
/// Returns the largest element v of e such that the exact sum of all elements >= v is at least p
/// times the whole sum.
float top_p_floor(std::span<const float> e, double p);
/// Returns e with elements below the floor replaced by +0.
std::vector<float> kept(std::span<const float> e, float floor);

/// Results of the rounds of a search that found this floor. Each round's threshold is the floor's
/// bits known so far, the highest first, with the next bit set. search_counts: elements >= the
/// threshold. search_sums: kSumWords words of their exact sum, after those of the whole sum.
std::vector<std::uint32_t> search_counts(std::span<const float> e, float floor);
std::vector<std::uint32_t> search_sums(std::span<const float> e, float floor);

/// Exact sum in units of 2^-149, and its words.
Natural sum_of_chances(std::span<const float> e);
std::vector<std::uint32_t> words_of(const Natural& sum);

/// The token on which r/2^24 of the sum falls; drawn: that of the row's own random number.
std::int32_t drawn_at(std::span<const float> e, std::uint32_t r);
std::int32_t drawn(std::span<const float> e, std::uint64_t seed, const Draw& draw);

/// Returns the token of each row of logits [BV] as int32 [B, 1], the input of the next pass.
IntTensor sampled(const Tensor& logits, const Draws& draws);

}  // namespace shardproof::oracle
