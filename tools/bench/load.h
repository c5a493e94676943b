#pragma once

#include <string>

namespace shardproof::bench {

/// Other load of the machine during a measurement.
struct Load {
  double before = 0.0, after = 0.0;  ///< one-minute load averages
  int processors = 1;
  double others = 0.0;  ///< share of all processors' time used by other processes
};

/// Prints "load average 0.10 before, 0.90 after; others took 1 % of 2 processors".
std::string sentence(const Load& load);

/// Measures load since construction, from /proc/loadavg, /proc/stat and the system's accounting of
/// this process and its ended children.
class LoadWatch {
 public:
  LoadWatch();
  Load said() const;

 private:
  double average_, wall_, all_, ours_;
};

}  // namespace shardproof::bench
