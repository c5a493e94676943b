#pragma once

#include <cstddef>

namespace shardproof::oracle {

inline constexpr std::size_t kTileRows = 6, kTileColumns = 8;

/// c[r·step + j] += Σ_k a[k·kTileRows + r]·b[k·kTileColumns + j], k < length. Whole numbers whose
/// sums are at most 2^53 on the way: nothing rounds, and neither the order nor fma changes a bit.
void add_tile(const double* a, const double* b, std::size_t length, double* c, std::size_t step);

/// The same of sums that may be at most 2^53 by themselves, and more together: each is split into
/// high·2^kSplit + low, |low| <= 2^(kSplit-1), and added to those of the tile: high to c, and low
/// `low` behind it. Exact for up to 2^26 of them.
inline constexpr int kSplit = 26;
void add_split_tile(const double* a, const double* b, std::size_t length, double* c,
                    std::size_t step, std::size_t low);

}  // namespace shardproof::oracle
