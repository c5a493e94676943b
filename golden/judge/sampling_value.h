#pragma once

#include <cstdint>
#include <string_view>

#include "golden/compare/comparison.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/sampling.h"

namespace shardproof {

/// Whether this sampling has a value of that name: a greedy one has none, and those of a threshold
/// only where one is asked for.
bool has_drawing(const Draws& draws, std::string_view name);

/// What a value of random sampling must be, "chances" or "top_p_sums", given the logits [BV] that
/// it follows from; of what there is one a block of the vocabulary, of so many blocks, which have
/// `placed_V` ids where that is more than the logits are (0: as many). Thresholds
/// are found by sorting (oracle/model/detail/sampling.h), and what the rounds of a search added up
/// follows from the threshold that they found. Throws what the oracle's chances() throws, and
/// std::out_of_range for a value that this sampling has not.
ExpectedBits sampling_value(std::string_view name, const Tensor& logits, const Draws& draws,
                            std::int64_t blocks, std::int64_t placed_V = 0);

}  // namespace shardproof
