#include "oracle/numeric/vectors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/numeric/rounded.h"

namespace shardproof::oracle {

namespace {

constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

std::uint32_t magnitude_of(float v) { return std::bit_cast<std::uint32_t>(v) & 0x7fffffff; }

/// Exponent of the lowest set bit of an f32's magnitude; kNone for zero. Branch-free 32-bit code,
/// so that a compiler vectorizes it eightfold: g++ does not where a conversion is conditional.
std::int32_t lowest_bit(std::uint32_t magnitude) {
  const auto field = static_cast<std::int32_t>(magnitude >> 23);
  const std::int32_t hidden = field != 0 ? 0x800000 : 0;
  const std::int32_t integer = static_cast<std::int32_t>(magnitude & 0x7fffff) | hidden;
  // The float's exponent gives the index of the power of two.
  const std::uint32_t power = std::bit_cast<std::uint32_t>(static_cast<float>(integer & -integer));
  const std::int32_t place = static_cast<std::int32_t>(power >> 23) - 127;
  const std::int32_t none = -static_cast<std::int32_t>(magnitude == 0);
  return ((std::max(field, 1) - 150 + place) & ~none) | (kNone & none);
}

/// Returns the scale of floats with this lowest bit and this largest magnitude.
Scale scale_of(std::int32_t lowest, std::uint32_t largest) {
  if (largest == 0) return {};
  const Parts p = parts_of(std::bit_cast<float>(largest));
  const int past =
      p.exponent + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(p.integer)));
  return {lowest, past - lowest};
}

}  // namespace

Scale scale_of(std::span<const float> floats) {
  std::int32_t lowest = kNone;
  std::uint32_t largest = 0;
  for (const float v : floats) {
    const std::uint32_t m = magnitude_of(v);
    lowest = std::min(lowest, lowest_bit(m));
    largest = std::max(largest, m);
  }
  return scale_of(lowest, largest);
}

std::int64_t integer_of(float v, Scale scale) {
  return static_cast<std::int64_t>(std::ldexp(static_cast<double>(v), -scale.exponent));
}

Vectors::Vectors(std::span<const float> matrix, std::size_t count)
    : data_(matrix), count_(count), length_(count == 0 ? 0 : matrix.size() / count) {}

void Vectors::view(std::size_t vector_step, std::size_t element_step) {
  vector_step_ = vector_step;
  element_step_ = element_step;
  scales_.resize(count_);
  if (element_step == 1) {
    for (std::size_t i = 0; i < count_; ++i)
      scales_[i] = scale_of(data_.subspan(i * vector_step, length_));
    return;
  }
  std::vector<std::int32_t> lowest(count_, kNone);
  std::vector<std::uint32_t> largest(count_, 0);
  for (std::size_t k = 0; k < length_; ++k) {
    const float* const of_all = data_.data() + k * element_step;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::uint32_t m = magnitude_of(of_all[i]);
      lowest[i] = std::min(lowest[i], lowest_bit(m));
      largest[i] = std::max(largest[i], m);
    }
  }
  for (std::size_t i = 0; i < count_; ++i) scales_[i] = scale_of(lowest[i], largest[i]);
}

Vectors Vectors::rows_of(std::span<const float> matrix, std::size_t count) {
  Vectors rows(matrix, count);
  rows.view(rows.length_, 1);
  return rows;
}

Vectors Vectors::columns_of(std::span<const float> matrix, std::size_t count) {
  Vectors columns(matrix, count);
  columns.view(1, count);
  return columns;
}

}  // namespace shardproof::oracle
