#pragma once

#include <cstddef>
#include <string>

namespace shardproof::tools {

/// Installs a report: a crash of the process (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) first
/// writes to standard error what was running, beginning with the crashing thread, then proceeds.
/// `file_at` returns the name of the mapped file that has an address, or null, and may neither lock
/// nor allocate. Where such a file is read beyond its end, because it was shortened, one line says
/// so (dump_changed), and the process ends with exit code 2.
void report_crashes(const char* (*file_at)(const void* address) noexcept = nullptr);

/// Registers, for its lifetime, the command that reruns what this thread is running. A thread has
/// one at a time; the 1025th thread is not registered.
class Running {
 public:
  explicit Running(std::string command);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::string command_;
  std::size_t slot_;
};

}  // namespace shardproof::tools
