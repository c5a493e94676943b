#include "tools/bench/load.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "tools/bench/cost.h"

namespace shardproof::bench {
namespace {

double load_average() {
  double average = 0.0;
  std::ifstream("/proc/loadavg") >> average;
  return average;
}

/// Returns the processor seconds of all processes together.
double seconds_of_all() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft_irq = 0;
  file >> cpu >> user >> nice >> system >> idle >> waiting >> irq >> soft_irq;
  return (user + nice + system + irq + soft_irq) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double seconds_of_ours() {
  double total = 0.0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      total += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return total;
}

}  // namespace

LoadWatch::LoadWatch()
    : average_(load_average()),
      wall_(clocks(Whose::process).wall),
      all_(seconds_of_all()),
      ours_(seconds_of_ours()) {}

Load LoadWatch::said() const {
  const auto processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const double had = (clocks(Whose::process).wall - wall_) * processors;
  const double others = (seconds_of_all() - all_) - (seconds_of_ours() - ours_);
  return {average_, load_average(), processors, had > 0.0 && others > 0.0 ? others / had : 0.0};
}

std::string sentence(const Load& load) {
  return fmt::format(
      "load average {:.2f} before, {:.2f} after; others took {:.0f} % of {} processors",
      load.before, load.after, 100.0 * load.others, load.processors);
}

}  // namespace shardproof::bench
