#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace shardproof::oracle {

/// A natural number of any size, for sampling's comparisons of real numbers.
class Natural {
 public:
  Natural() = default;

  /// Adds the integer v·2^(149 + shift) of a float v ≥ 0; shift ≥ 0.
  void add(float v, int shift = 0);
  void add(const Natural& other);
  /// Returns this number times factor·2^shift.
  Natural times(std::uint64_t factor, int shift = 0) const;
  /// Digit n in base 2^16; digit 0 is the least significant.
  std::uint32_t digit(std::size_t n) const { return n < digits_.size() ? digits_[n] : 0; }

  std::strong_ordering operator<=>(const Natural& other) const;
  bool operator==(const Natural& other) const = default;

 private:
  void trim();

  std::vector<std::uint32_t> digits_;  // base 2^16, little-endian, no leading zeros
};

}  // namespace shardproof::oracle
