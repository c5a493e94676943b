#pragma once

#include <functional>
#include <string>
#include <vector>

namespace shardproof::bench {

/// One side of a comparison: what it is called and what it runs.
struct Side {
  std::string name;
  std::function<void()> run;
};

/// Which clock a contest goes by: the processor time of the calling thread, which other work on the
/// machine does not lengthen, or the wall clock where several threads work.
enum class Clock { thread, wall };

/// Runs the sides in turn, in one process, `rounds` times after one round that is not counted, and
/// returns the median of each in seconds. A side that is short runs several times a round, so that
/// every measurement takes about a millisecond or more.
std::vector<double> contest(const std::vector<Side>& sides, Clock clock, int rounds);

double seconds(Clock clock);

}  // namespace shardproof::bench
