#pragma once

#include <cstddef>

namespace shardproof::oracle {

inline constexpr std::size_t kTileRows = 6, kTileColumns = 8;

/// c[r·step + j] += Σ_k a[k·kTileRows + r]·b[k·kTileColumns + j], k < length. Whole numbers whose
/// sums are at most 2^53 on the way: nothing rounds, and neither the order nor fma changes a bit.
void add_tile(const double* a, const double* b, std::size_t length, double* c, std::size_t step);

}  // namespace shardproof::oracle
