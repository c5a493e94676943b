#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "oracle/numeric/field_number.h"
#include "weights/model/field_setting.h"

namespace shardproof::oracle::field {

/// Random numbers and random functions by name (docs/field.md section 1.2). The setting is one that
/// Arithmetic takes.
class Random {
 public:
  explicit Random(const FieldSetting& setting) : setting_(setting) {}

  /// The first elements of the stream called `name`, row-major.
  Tensor stream(std::string_view name, const Shape& shape) const;
  /// The function called `name` of v, `hash` being fnv1a64(name); the 0 of 0 that some functions
  /// have is not looked at.
  Number function(std::uint64_t hash, const Number& v) const;

 private:
  /// The result of the first tries without a lane of p; word 3 of the counter counts them.
  Number numbers(std::array<std::uint64_t, 4> counter, std::uint64_t hash) const;

  FieldSetting setting_;
};

/// The functions that are 0 of 0, so that padding of zeros stays zeros.
bool keeps_zero(std::string_view function);

}  // namespace shardproof::oracle::field
