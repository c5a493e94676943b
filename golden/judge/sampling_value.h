#pragma once

#include <cstdint>
#include <string_view>

#include "golden/compare/comparison.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/sampling.h"

namespace shardproof {

/// Returns true if this sampling has a value of that name: greedy sampling has none, and thresholds
/// exist only if requested.
bool has_drawing(const Draws& draws, std::string_view name);

/// Returns the expected value "chances", "top_p_sums" or another of random sampling, given the
/// logits [BV] that it follows from. `blocks` is the number of blocks of the vocabulary, for values
/// that have one element per block; the blocks have `placed_V` ids together, if that is more than
/// the logits have (0: as many). Thresholds are found by sorting (oracle/model/detail/sampling.h);
/// the sums of a search's rounds follow from the threshold found. Throws what the oracle's
/// chances() throws, and std::out_of_range if this sampling has no such value.
ExpectedBits sampling_value(std::string_view name, const Tensor& logits, const Draws& draws,
                            std::int64_t blocks, std::int64_t placed_V = 0);

}  // namespace shardproof
