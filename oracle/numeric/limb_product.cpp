// Compiled with -ffp-contract=fast: with whole numbers, products and sums are exact, fused or not.
#include "oracle/numeric/limb_product.h"

namespace shardproof::oracle {
namespace {

constexpr std::size_t kLanes = 4;
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));
/// Unaligned Lanes.
typedef double Loose
    __attribute__((vector_size(kLanes * sizeof(double)), aligned(sizeof(double)), may_alias));

const Loose& lanes(const double* at) { return *reinterpret_cast<const Loose*>(at); }
Loose& lanes(double* at) { return *reinterpret_cast<Loose*>(at); }

/// Computes the tile's sums and calls end(left, right, r) for each row.
template <class End>
inline void tile(const double* a, const double* b, std::size_t length, End&& end) {
  static_assert(kTileColumns == 2 * kLanes);
  // Keeps twelve sums in registers, with two vectors of b and one element of a.
  Lanes left[kTileRows] = {}, right[kTileRows] = {};
  for (std::size_t k = 0; k < length; ++k) {
    const Lanes of_left = lanes(b), of_right = lanes(b + kLanes);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < kTileRows; ++r) {
      left[r] += a[r] * of_left;
      right[r] += a[r] * of_right;
    }
    a += kTileRows;
    b += kTileColumns;
  }
#pragma GCC unroll 6
  for (std::size_t r = 0; r < kTileRows; ++r) end(left[r], right[r], r);
}

}  // namespace

void add_tile(const double* a, const double* b, std::size_t length, double* c, std::size_t step) {
  tile(a, b, length, [&](const Lanes& left, const Lanes& right, std::size_t r) {
    lanes(c + r * step) += left;
    lanes(c + r * step + kLanes) += right;
  });
}

void add_split_tile(const double* a, const double* b, std::size_t length, double* c,
                    std::size_t step, std::size_t low) {
  // Adding and subtracting kRound rounds a number below 2^51 to a whole number.
  constexpr double kRound = 0x1.8p52;
  constexpr double kBase = 1 << kSplit;
  tile(a, b, length, [&](const Lanes& left, const Lanes& right, std::size_t r) {
    double* const at = c + r * step;
    const Lanes high_left = (left * (1 / kBase) + kRound) - kRound;
    const Lanes high_right = (right * (1 / kBase) + kRound) - kRound;
    lanes(at) += high_left;
    lanes(at + kLanes) += high_right;
    lanes(at + low) += left - high_left * kBase;
    lanes(at + low + kLanes) += right - high_right * kBase;
  });
}

}  // namespace shardproof::oracle
