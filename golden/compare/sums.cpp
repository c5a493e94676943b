#include "golden/compare/sums.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace shardproof {
namespace {

/// Returns `bound`, or +0 if nothing was lost. Uses a mask: g++ turns a conditional into a branch,
/// and does not vectorize a loop with a branch.
double unless_zero(double lost, double bound) {
  const std::uint64_t mask = std::bit_cast<std::uint64_t>(lost) << 1 != 0 ? ~std::uint64_t{0} : 0;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(bound) & mask);
}

}  // namespace

void BlockSums::clear(std::int64_t n) {
  n_ = n;
  count_ = 0.0;
  sums_.fill(0.0);
  bounds_.fill(0.0);
}

void BlockSums::add(const double* values, const float* bounds) {
  const auto n = static_cast<std::size_t>(n_);
  if (bounds != nullptr)
    for (std::size_t i = 0; i < n; ++i) bounds_[i] += static_cast<double>(bounds[i]);
  for (std::size_t i = 0; i < n; ++i) {
    const double old = sums_[i];
    const double next = old + values[i];
    const double virtual_value = next - old;
    const double lost = (old - (next - virtual_value)) + (values[i] - virtual_value);
    bounds_[i] += unless_zero(lost, std::abs(next) * 0x1p-53);
    sums_[i] = next;
  }
  count_ += 1.0;
}

void BlockSums::finish() {
  const auto n = static_cast<std::size_t>(n_);
  const double factor = 1.0 + (count_ + 2.0) * 0x1p-50;
  for (std::size_t i = 0; i < n; ++i) bounds_[i] *= factor;
  for (std::size_t i = 0; i < n; ++i) low_[i] = static_cast<float>(sums_[i] - bounds_[i]);
  for (std::size_t i = 0; i < n; ++i) high_[i] = static_cast<float>(sums_[i] + bounds_[i]);
}

bool BlockSums::are(const std::byte* want, std::int64_t from, std::int64_t n) const {
  const auto at = static_cast<std::size_t>(from);
  const auto bytes = static_cast<std::size_t>(n) * sizeof(float);
  return std::memcmp(low_.data() + at, want, bytes) == 0 &&
         std::memcmp(high_.data() + at, want, bytes) == 0;
}

}  // namespace shardproof
