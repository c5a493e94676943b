#pragma once

#include <cstdint>

namespace shardproof {

/// Number type of the field regime (docs/field.md section 1): elements of F_p^lanes, p = 2^bits − 1
/// a prime. All fields but the seed exist for tests of the bound itself.
struct FieldSetting {
  std::uint64_t seed = 0;
  int bits = 61;  ///< 61, 31, 19, 17, 13, 7, 5 or 3
  int lanes = 3;  ///< 1 to 3
  int draw = 0;   ///< 1 if a first run met an element without an inverse
  bool operator==(const FieldSetting&) const = default;
};

}  // namespace shardproof
