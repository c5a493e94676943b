#include "tools/runner/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace shardproof::tools {

Progress::Progress(std::int64_t total, std::string what) : total_(total), what_(std::move(what)) {
  if (::isatty(STDERR_FILENO) == 0) return;
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return ended_; })) show();
  });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  const auto hidden = hide();
}

void Progress::step() {
  const std::lock_guard lock(mutex_);
  ++done_;
}

std::unique_lock<std::mutex> Progress::hide() {
  std::unique_lock lock(mutex_);
  if (visible_) {
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    visible_ = false;
  }
  return lock;
}

void Progress::show() {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin_);
  const std::string of = total_ > 0 ? fmt::format(" of {}", total_) : "";
  std::fputs(fmt::format("\r\033[K{}{} {}, {} s", done_, of, what_, seconds.count()).c_str(),
             stderr);
  std::fflush(stderr);
  visible_ = true;
}

}  // namespace shardproof::tools
