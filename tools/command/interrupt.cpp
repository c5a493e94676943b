#include "tools/command/interrupt.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "weights/base/detail/temporary_name.h"

namespace shardproof::tools {
namespace {

using Reports = std::vector<const std::function<void(int)>*>;

struct State {
  /// Guards `reports`. Held while an interrupt ends the process, so that nothing else ends it with
  /// another code, and from the end of main on.
  std::mutex mutex;
  Reports reports;
};

/// Never destroyed, because the watching thread outlives main.
State& state() {
  static State* const one = new State;
  return *one;
}

[[noreturn]] void end(int signal) {
  remove_temporaries();
  ::_exit(128 + signal);
}

void report_and_end(int signal) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const Reports latest_first(s.reports.rbegin(), s.reports.rend());
  for (const std::function<void(int)>* report : latest_first) {
    try {
      (*report)(signal);
    } catch (...) {
      // The report printed what it could; the process ends nevertheless.
    }
  }
  end(signal);
}

void watch(const sigset_t& watched) {
  int first = 0;
  if (::sigwait(&watched, &first) != 0) return;
  try {
    std::thread(report_and_end, first).detach();
  } catch (const std::system_error&) {
    end(first);
  }
  // A report that waits for a reader of its output must not keep the process alive.
  constexpr std::timespec kMost{5, 0};
  int second = 0;
  do second = ::sigtimedwait(&watched, nullptr, &kMost);
  while (second < 0 && errno == EINTR);
  end(second > 0 ? second : first);
}

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

void watch_interrupts() {
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t watched;
  ::sigemptyset(&watched);
  bool any = false;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (is_ignored(signal)) continue;
    ::sigaddset(&watched, signal);
    any = true;
  }
  if (!any) return;
  // Threads started later inherit the mask, so that only the watching thread takes the signals.
  sigset_t before;
  if (::pthread_sigmask(SIG_BLOCK, &watched, &before) != 0) return;
  state();
  try {
    std::thread(watch, watched).detach();
  } catch (const std::system_error&) {  // without the thread, keep the default actions
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return;
  }
  std::atexit(keep_from_ending);
}

void keep_from_ending() {
  static bool kept = false;
  if (!std::exchange(kept, true)) state().mutex.lock();
}

AtInterrupt::AtInterrupt(std::function<void(int signal)> report) : report_(std::move(report)) {
  const std::lock_guard lock(state().mutex);
  state().reports.push_back(&report_);
}

AtInterrupt::~AtInterrupt() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.reports.erase(std::remove(s.reports.begin(), s.reports.end(), &report_), s.reports.end());
}

}  // namespace shardproof::tools
