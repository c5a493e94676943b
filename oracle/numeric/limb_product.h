#pragma once

#include <cstddef>

namespace shardproof::oracle {

inline constexpr std::size_t kTileRows = 6, kTileColumns = 8;

/// c[r·step + j] += Σ_k a[k·kTileRows + r]·b[k·kTileColumns + j], k < length. All intermediate sums
/// are integers of at most 2^53: nothing rounds, and neither order nor fma changes a bit.
void add_tile(const double* a, const double* b, std::size_t length, double* c, std::size_t step);

/// Like add_tile, for sums of at most 2^53 per call but more in total: each sum is split into
/// high·2^kSplit + rest, |rest| <= 2^(kSplit-1), of which high is added at c and the rest at c +
/// low. Exact for up to 2^26 calls.
inline constexpr int kSplit = 26;
void add_split_tile(const double* a, const double* b, std::size_t length, double* c,
                    std::size_t step, std::size_t low);

}  // namespace shardproof::oracle
