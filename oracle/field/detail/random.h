#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "oracle/numeric/field_number.h"
#include "weights/model/field_setting.h"

namespace shardproof::oracle::field {

/// Random numbers and random functions by name (docs/field.md section 1.2). The setting must be
/// valid for Arithmetic.
class Random {
 public:
  explicit Random(const FieldSetting& setting) : setting_(setting) {}

  /// Returns the first elements of the stream called `name`, row-major.
  Tensor stream(std::string_view name, const Shape& shape) const;
  /// Returns the function with hash = fnv1a64(name) at v, ignoring that some functions map 0 to 0.
  Number function(std::uint64_t hash, const Number& v) const;

 private:
  /// Returns the first try in which no lane is p; word 3 of the counter counts the tries.
  Number numbers(std::array<std::uint64_t, 4> counter, std::uint64_t hash) const;

  FieldSetting setting_;
};

/// Returns whether the function maps 0 to 0, which keeps zero padding zero.
bool keeps_zero(std::string_view function);

}  // namespace shardproof::oracle::field
