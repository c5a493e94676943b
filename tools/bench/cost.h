#pragma once

namespace shardproof::bench {

/// Seconds by both clocks, or a figure derived from them, such as a ratio.
struct Cost {
  double processor = 0.0;  ///< user and system time
  double wall = 0.0;
};

Cost operator-(Cost a, Cost b);
Cost operator/(Cost a, Cost b);

/// Processor time to count: the calling thread's, or that of all threads of the process.
enum class Whose { thread, process };

/// Reads both clocks; only differences are meaningful.
Cost clocks(Whose whose);

}  // namespace shardproof::bench
