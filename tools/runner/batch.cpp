#include "tools/runner/batch.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <utility>

#include "tools/runner/crash_report.h"

namespace shardproof::tools {

Batch::Batch(const std::vector<Case>& cases, Plans plans, VerifyOptions common, int threads,
             bool alone, std::function<std::string(const Case&)> command)
    : cases_(cases),
      plans_(std::move(plans)),
      common_(std::move(common)),
      alone_(alone),
      threads_(threads),
      command_(std::move(command)),
      answers_(cases.size()) {}

Answered Batch::answer(std::size_t i) {
  const Case& c = cases_[i];
  const Running running(command_(c));
  VerifyOptions options = common_;
  options.threads = alone_ ? threads_ : 1;
  options.at_once = alone_ ? 1 : threads_;
  const auto begin = std::chrono::steady_clock::now();
  Answered answered;
  try {
    const auto plan = plans_.empty() ? nullptr : std::exchange(plans_[i], nullptr);
    answered.judgement =
        plan != nullptr ? verify_plan(*plan, memo_, options) : verify_case(c, memo_, options);
  } catch (...) {
    if (alone_) throw;
    answered.judgement = ended_by(std::current_exception());
  }
  answered.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return answered;
}

void Batch::run(const std::function<void(std::size_t, const Answered&)>& done) {
  Threads pool(alone_ ? 1 : threads_);
  std::mutex mutex;
  std::size_t next = 0;
  pool.for_each(static_cast<std::int64_t>(cases_.size()), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    Answered answered = answer(at);
    const std::lock_guard lock(mutex);
    answers_[at] = std::move(answered);
    for (; next < cases_.size() && answers_[next]; ++next) done(next, *answers_[next]);
  });
}

}  // namespace shardproof::tools
