#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weights/storage/generator.h"

namespace shardproof::rerun {

/// Random numbers of one purpose of one run. They depend on (seed, run, purpose) alone, so the
/// order of draws between purposes does not matter.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t run, std::string_view purpose) {
    const auto words = counter_random(seed, purpose, run);
    state_ = words[0] | std::uint64_t{words[1]} << 32;
  }

  /// One step of the splitmix64 generator.
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  /// Returns a number from 0 to n−1.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  /// Returns a number in [0, 1).
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool coin() { return (next() >> 63) != 0; }

 private:
  std::uint64_t state_;
};

}  // namespace shardproof::rerun
