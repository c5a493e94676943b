#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "oracle/numeric/field_number.h"
#include "weights/base/error.h"
#include "weights/model/field_setting.h"

namespace shardproof::oracle::field {

/// Sums and products of numbers, lane by lane modulo p = 2^bits − 1 (docs/field.md section 1.1).
class Arithmetic {
 public:
  /// Throws Error("field_setting", ...) if 2^bits − 1 is not a prime of FieldSetting's list, or
  /// lanes are not 1 to 3.
  explicit Arithmetic(const FieldSetting& setting);

  std::uint64_t p() const { return p_; }
  std::size_t lanes() const { return lanes_; }  ///< in use

  Number integer(std::int64_t i) const;
  Number add(const Number& x, const Number& y) const;
  Number subtract(const Number& x, const Number& y) const;
  Number multiply(const Number& x, const Number& y) const;
  /// Returns the first used lane that is 0, in which case x has no inverse.
  std::optional<std::size_t> zero_lane(const Number& x) const;
  /// Returns 1/x. Requires that zero_lane(x) is empty.
  Number inverse(const Number& x) const;
  /// Returns Σ x_i·y_i over i < n.
  Number dot(const Number* x, const Number* y, std::size_t n) const;

 private:
  std::uint64_t p_;
  std::size_t lanes_;
};

}  // namespace shardproof::oracle::field
