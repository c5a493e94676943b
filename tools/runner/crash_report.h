#pragma once

#include <cstddef>
#include <string>

namespace shardproof::tools {

/// From now on a crash of the process (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) first writes to
/// standard error what was running, the crashing thread's own first; then it takes its course.
void report_crashes();

/// What a thread is running, for as long as this lives: the command that runs it again. A thread
/// has one at a time; the 1025th thread goes unnamed.
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
