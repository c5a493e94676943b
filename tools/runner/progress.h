#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace shardproof::tools {

/// Shows the progress of a long run on standard error, "12 of 500 cases, 3 s", from the first
/// second until the run ends. Does nothing unless standard error is a terminal.
class Progress {
 public:
  /// Counts `total` things, 0 if unknown; `what` is their plural: "cases".
  Progress(std::int64_t total, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts one more as done.
  void step();
  /// Hides the line while the result is alive, so that something else can be printed; afterwards it
  /// reappears by itself.
  [[nodiscard]] std::unique_lock<std::mutex> hide();

 private:
  void show();

  std::int64_t total_;
  std::string what_;
  std::int64_t done_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  bool visible_ = false;
  std::thread thread_;  // last: it uses all other members
};

}  // namespace shardproof::tools
