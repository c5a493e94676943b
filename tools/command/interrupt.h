#pragma once

#include <functional>

namespace shardproof::tools {

/// To be called first in main, before any thread starts. From then on SIGINT, SIGTERM and SIGHUP,
/// where they were not ignored already, end the process from a thread that waits for them: it makes
/// what AtInterrupt holds, removes temporary files and ends by _exit(128 + signal). A second signal
/// meanwhile ends the process at once, as do a few seconds without an end of the reports. A write
/// beyond the limit on a file's size fails as any other, instead of raising SIGXFSZ.
void watch_interrupts();

/// While it lives: what is called before an interrupt ends the process. `report` must print and
/// flush what it has; it may take locks that are held only briefly. It runs on a thread of its own,
/// beside what the program is doing. The destructor waits for a report that has begun: then the
/// process ends.
class AtInterrupt {
 public:
  explicit AtInterrupt(std::function<void(int signal)> report);
  AtInterrupt(const AtInterrupt&) = delete;
  AtInterrupt& operator=(const AtInterrupt&) = delete;
  ~AtInterrupt();

 private:
  std::function<void(int signal)> report_;
};

/// To be called in main before it says why it fails: does not return if an interrupt is ending the
/// process, which may itself be why; later interrupts do not end it before main does.
void keep_from_ending();

}  // namespace shardproof::tools
