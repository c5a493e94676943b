// Compiled with -ffp-contract=fast: of whole numbers a product and its sum are exact, fused or not.
#include "oracle/limb_product.h"

namespace shardproof::oracle {

namespace {

constexpr std::size_t kLanes = 4;
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));
/// The same where it need not be aligned.
typedef double Loose
    __attribute__((vector_size(kLanes * sizeof(double)), aligned(sizeof(double)), may_alias));

const Loose& lanes(const double* at) { return *reinterpret_cast<const Loose*>(at); }
Loose& lanes(double* at) { return *reinterpret_cast<Loose*>(at); }

}  // namespace

void add_tile(const double* a, const double* b, std::size_t length, double* c, std::size_t step) {
  static_assert(kTileColumns == 2 * kLanes);
  // Twelve sums stay in registers, beside the two vectors of b and one element of a.
  Lanes left[kTileRows], right[kTileRows];
#pragma GCC unroll 6
  for (std::size_t r = 0; r < kTileRows; ++r) {
    left[r] = lanes(c + r * step);
    right[r] = lanes(c + r * step + kLanes);
  }
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
  for (std::size_t r = 0; r < kTileRows; ++r) {
    lanes(c + r * step) = left[r];
    lanes(c + r * step + kLanes) = right[r];
  }
}

}  // namespace shardproof::oracle
