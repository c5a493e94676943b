#pragma once

#include <string>

namespace shardproof::bench {

/// What else the machine did while something was measured.
struct Load {
  double before = 0.0, after = 0.0;  ///< load averages of a minute
  int processors = 1;
  double others = 0.0;  ///< share of all processors' time that other processes took
};

/// "load average 0.10 before, 0.90 after; others took 1 % of 2 processors"
std::string sentence(const Load& load);

/// Watches from its making on; by /proc/loadavg, /proc/stat and what the system says of this
/// process and its children that have ended.
class LoadWatch {
 public:
  LoadWatch();
  Load said() const;

 private:
  double average_, wall_, all_, ours_;
};

}  // namespace shardproof::bench
