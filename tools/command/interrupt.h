#pragma once

#include <functional>

namespace shardproof::tools {

/// Call first in main, before any thread starts. Afterwards SIGINT, SIGTERM and SIGHUP, unless
/// already ignored, end the process from a thread that waits for them: it runs the reports of
/// AtInterrupt, removes temporary files and calls _exit(128 + signal). A second signal, or reports
/// that last longer than a few seconds, end the process at once. A write beyond the file size limit
/// fails like any other, instead of raising SIGXFSZ.
void watch_interrupts();

/// Registers, for its lifetime, a report that runs before an interrupt ends the process. `report`
/// must print and flush what it has; it may take locks that are held only briefly. It runs on its
/// own thread, concurrently with the program. The destructor waits for a report that has begun,
/// after which the process ends.
class AtInterrupt {
 public:
  explicit AtInterrupt(std::function<void(int signal)> report);
  AtInterrupt(const AtInterrupt&) = delete;
  AtInterrupt& operator=(const AtInterrupt&) = delete;
  ~AtInterrupt();

 private:
  std::function<void(int signal)> report_;
};

/// Call in main before reporting a failure: does not return if an interrupt is ending the process
/// and may be the cause; later interrupts no longer end the process before main does.
void keep_from_ending();

}  // namespace shardproof::tools
