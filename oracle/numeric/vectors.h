#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weights/base/error.h"

namespace shardproof::oracle {

/// Floats as integers times one power of two: v = integer·2^exponent, |integer| < 2^bits. The
/// exponent is that of the lowest set bit of any float; bits is 0 if all are zero.
struct Scale {
  int exponent = 0;
  int bits = 0;

  /// Returns whether the integers fit 64 bits, and the product of two the range of f64.
  bool fits() const { return bits <= 62; }
};

/// Returns whether a sum of `length` products of such integers fits 127 bits and a sign.
inline bool sum_fits(Scale x, Scale y, std::size_t length) {
  return x.fits() && y.fits() && x.bits + y.bits + static_cast<int>(std::bit_width(length)) <= 127;
}

/// Returns the common scale. Throws Error("oracle_finite", ...) on an infinity or NaN.
Scale scale_of(std::span<const float> floats);

/// Returns the integer of v, one of the floats from which a fitting scale was computed.
std::int64_t integer_of(float v, Scale scale);

/// Vectors of one length, the rows or the columns of a product, each with its scale. Element k of
/// vector i is at data()[i·vector_step() + k·element_step()]; one of the two steps is 1.
class Vectors {
 public:
  /// View the `count` rows or columns of a row-major matrix, which must outlive them unchanged.
  /// Throw Error("oracle_finite", ...) on an infinity or NaN.
  static Vectors rows_of(std::span<const float> matrix, std::size_t count);
  static Vectors columns_of(std::span<const float> matrix, std::size_t count);
  static Vectors rows_of(std::vector<float>&&, std::size_t) = delete;
  static Vectors columns_of(std::vector<float>&&, std::size_t) = delete;

  std::size_t count() const { return count_; }
  std::size_t length() const { return length_; }
  Scale scale(std::size_t i) const { return scales_[i]; }

  const float* data() const { return data_.data(); }
  std::size_t vector_step() const { return vector_step_; }
  std::size_t element_step() const { return element_step_; }
  float at(std::size_t i, std::size_t k) const {
    return data_[i * vector_step_ + k * element_step_];
  }

 private:
  Vectors(std::span<const float> matrix, std::size_t count);
  /// Sets the steps and computes the scales.
  void view(std::size_t vector_step, std::size_t element_step);

  std::span<const float> data_;
  std::size_t count_, length_;
  std::size_t vector_step_ = 0, element_step_ = 0;
  std::vector<Scale> scales_;
};

}  // namespace shardproof::oracle
