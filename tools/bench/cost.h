#pragma once

namespace shardproof::bench {

/// Seconds by both clocks; or a figure made of them, such as a ratio, by either.
struct Cost {
  double processor = 0.0;  ///< user and system time
  double wall = 0.0;
};

Cost operator-(Cost a, Cost b);
Cost operator/(Cost a, Cost b);

/// Whose processor time counts: of the calling thread alone, or of all threads of the process.
enum class Whose { thread, process };

/// What both clocks show; meaningful as a difference of two.
Cost clocks(Whose whose);

}  // namespace shardproof::bench
