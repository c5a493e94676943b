#include "tools/bench/cost.h"

#include <ctime>

namespace shardproof::bench {
namespace {

double read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

Cost operator-(Cost a, Cost b) { return {a.processor - b.processor, a.wall - b.wall}; }
Cost operator/(Cost a, Cost b) { return {a.processor / b.processor, a.wall / b.wall}; }

Cost clocks(Whose whose) {
  return {read_clock(whose == Whose::thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID),
          read_clock(CLOCK_MONOTONIC)};
}

}  // namespace shardproof::bench
