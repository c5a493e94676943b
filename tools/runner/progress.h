#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace shardproof::tools {

/// A line on standard error that says how far a long run is: "12 of 500 cases, 3 s". It appears
/// after the first second and goes when the run ends. Where standard error is no terminal, there is
/// none.
class Progress {
 public:
  /// Of `total` things that are called so, in the plural: "cases"; 0 where nobody knows how many.
  Progress(std::int64_t total, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more is done.
  void step();
  /// Takes the line away, so that something else can be printed; it stays away while the result
  /// lives, and comes back by itself.
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
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace shardproof::tools
