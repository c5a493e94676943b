#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace shardproof::oracle {

/// A natural number of any size, for the comparisons of sampling, which are of real numbers.
class Natural {
 public:
  Natural() = default;

  /// Adds v·2^(149 + shift) of a float v ≥ 0, a whole number; shift ≥ 0.
  void add(float v, int shift = 0);
  void add(const Natural& other);
  /// Times factor·2^shift.
  Natural times(std::uint64_t factor, int shift = 0) const;
  /// Digit n of base 2^16, of which 0 is the last.
  std::uint32_t digit(std::size_t n) const { return n < digits_.size() ? digits_[n] : 0; }

  std::strong_ordering operator<=>(const Natural& other) const;
  bool operator==(const Natural& other) const = default;

 private:
  void trim();

  std::vector<std::uint32_t> digits_;  // below 2^16, the last first, without zeros in front
};

}  // namespace shardproof::oracle
