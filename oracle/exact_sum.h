#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weights/error.h"

namespace shardproof::oracle {

/// S of docs/spec.md section 1, one product at a time: an integer of 640 bits that counts units of
/// 2^-298, the smallest product of two f32. It holds 2^85 products of the largest f32.
class Sum {
 public:
  /// Adds a·b exactly. Throws Error("oracle_finite") if a factor is infinite or NaN.
  void add(float a, float b = 1.0F);
  /// (float) RN64 of the sum so far; an exact zero is +0.
  float value() const;

 private:
  std::array<std::uint64_t, 10> words_{};  // two's complement, least significant first
};

/// S(x, y) and S(x, 1) of two vectors, by Sum.
float sum_of_products(std::span<const float> x, std::span<const float> y);
float sum_of(std::span<const float> x);

/// Vectors of one length, the rows or the columns of a product. Each is kept as its floats and, if
/// its exponents lie close enough together, as 64-bit integers times one power of two.
class Vectors {
 public:
  /// Reads element k of vector i as at(i, k).
  template <class At>
  Vectors(std::size_t count, std::size_t length, At at) : count_(count), length_(length) {
    values_.reserve(count * length);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < length; ++k) values_.push_back(at(i, k));
    align();
  }

  std::size_t count() const { return count_; }
  std::size_t length() const { return length_; }

 private:
  friend std::optional<float> fixed_point_dot(const Vectors&, std::size_t, const Vectors&,
                                              std::size_t);
  friend float wide_dot(const Vectors&, std::size_t, const Vectors&, std::size_t);

  /// v_k = integers_k · 2^exponent, |integers_k| < 2^bits; bits 63 says that 64 bits do not do.
  struct Scale {
    int exponent = 0;
    int bits = 0;
  };
  void align();

  std::size_t count_, length_;
  std::vector<float> values_;
  std::vector<std::int64_t> integers_;
  std::vector<Scale> scales_;
};

/// S of rows[i] and columns[j] in 128-bit fixed point; nothing if it might not fit.
std::optional<float> fixed_point_dot(const Vectors& rows, std::size_t i, const Vectors& columns,
                                     std::size_t j);
/// The same by Sum, always.
float wide_dot(const Vectors& rows, std::size_t i, const Vectors& columns, std::size_t j);

/// Every S(rows[i], columns[j]), row-major, by whichever method fits. Throws
/// Error("oracle_length") if the vectors' lengths differ.
std::vector<float> contract(const Vectors& rows, const Vectors& columns);

}  // namespace shardproof::oracle
