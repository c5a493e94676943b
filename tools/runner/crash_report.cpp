#include "tools/runner/crash_report.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace shardproof::tools {
namespace {

constexpr std::size_t kSlots = 1024;
std::array<std::atomic<const char*>, kSlots> slots{};
thread_local const char* mine = nullptr;

struct Crash {
  int number;
  const char* name;
};
constexpr std::array<Crash, 5> kCrashes{{{SIGSEGV, "SIGSEGV"},
                                         {SIGBUS, "SIGBUS"},
                                         {SIGFPE, "SIGFPE"},
                                         {SIGILL, "SIGILL"},
                                         {SIGABRT, "SIGABRT"}}};
std::array<struct sigaction, kCrashes.size()> before{};
const char* (*mapped)(const void*) noexcept = nullptr;

// Code below runs in a signal handler: it must not allocate or lock.

void say(const char* text) {
  std::size_t left = std::strlen(text);
  while (left > 0) {
    const ssize_t count = ::write(STDERR_FILENO, text, left);
    if (count <= 0) return;
    text += count;
    left -= static_cast<std::size_t>(count);
  }
}

void name_what_runs(int signal, siginfo_t* info, void* /*context*/) {
  const bool beyond_end = signal == SIGBUS && info->si_code == BUS_ADRERR;
  const char* const file = beyond_end && mapped != nullptr ? mapped(info->si_addr) : nullptr;
  if (file != nullptr) {
    say("shardproof: dump_changed: ");
    say(file);
    say(" was shortened while it was read; wait until its writer has ended, then read it again\n");
    ::_exit(2);
  }
  std::size_t at = 0;
  while (at + 1 < kCrashes.size() && kCrashes[at].number != signal) ++at;
  say("\nshardproof: crashed by ");
  say(kCrashes[at].name);
  say(mine != nullptr ? "; reproduce: " : "\n");
  if (mine != nullptr) {
    say(mine);
    say("\n");
  }
  for (const auto& slot : slots) {
    const char* const other = slot.load();
    if (other == nullptr || other == mine) continue;
    say(mine == nullptr ? "running: " : "running beside it: ");
    say(other);
    say("\n");
  }
  // On return, the crash recurs under the previous handler.
  ::sigaction(signal, &before[at], nullptr);
  ::raise(signal);
}

/// Provides an alternate signal stack for this thread: its own stack may have overflowed.
void require_signal_stack() {
  stack_t stack{};
  if (::sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
  struct Memory {
    void* bytes = nullptr;
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
      if (bytes == nullptr) return;
      stack_t none{};
      none.ss_flags = SS_DISABLE;
      ::sigaltstack(&none, nullptr);
      std::free(bytes);
    }
  };
  constexpr std::size_t kBytes = std::size_t{1} << 16;
  thread_local Memory memory;
  memory.bytes = std::malloc(kBytes);
  if (memory.bytes == nullptr) return;
  stack.ss_sp = memory.bytes;
  stack.ss_size = kBytes;
  stack.ss_flags = 0;
  ::sigaltstack(&stack, nullptr);
}

}  // namespace

void report_crashes(const char* (*file_at)(const void* address) noexcept) {
  mapped = file_at;
  struct sigaction action {};
  action.sa_sigaction = name_what_runs;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kCrashes.size(); ++i)
    ::sigaction(kCrashes[i].number, &action, &before[i]);
}

Running::Running(std::string command) : command_(std::move(command)), slot_(kSlots) {
  require_signal_stack();
  mine = command_.c_str();
  for (std::size_t i = 0; i < kSlots && slot_ == kSlots; ++i) {
    const char* none = nullptr;
    if (slots[i].compare_exchange_strong(none, mine)) slot_ = i;
  }
}

Running::~Running() {
  if (slot_ < kSlots) slots[slot_].store(nullptr);
  mine = nullptr;
}

}  // namespace shardproof::tools
