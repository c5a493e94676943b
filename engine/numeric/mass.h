#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace shardproof {

/// An exact sum of floats from 0 to 1, as softmax weights are: a 192-bit natural number in units of
/// 2^-149, the smallest float. It holds 2^42 of them. Partial masses travel between chips as words
/// of 16 bits each, which int32 adds over any number of chips without a carry.
class Mass {
 public:
  static constexpr int kWords = 12;
  using Words = std::array<std::int32_t, kWords>;

  /// Adds v ≥ 0. NaN and negative values add nothing; values above 2^31 add 2^31.
  void add(float v);
  /// Adds words, or sums of words.
  void add(std::span<const std::int32_t, kWords> words);
  Words words() const;

  /// Returns true if the mass is at least p·total, as real numbers; 0 < p <= 1.
  bool at_least(double p, const Mass& total) const;
  /// Returns true if the mass is more than r/2^24 of the total, as real numbers; r < 2^24.
  bool more_than(std::uint32_t r, const Mass& total) const;

  /// Adds floats until the sum exceeds r/2^24 of the total, and returns the index of the float that
  /// exceeds it; the number of floats if none does.
  std::int64_t falls_on(std::span<const float> e, std::uint32_t r, const Mass& total);

 private:
  static constexpr std::size_t kLimbs = 3;
  void add_at(std::size_t bit, std::uint64_t value);

  std::array<std::uint64_t, kLimbs> limbs_{};  // least significant first
};

}  // namespace shardproof
