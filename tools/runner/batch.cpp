#include "tools/runner/batch.h"

#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "tools/runner/crash_report.h"

namespace shardproof::tools {

Batch::Batch(std::size_t size, std::function<ToRun(std::size_t)> case_of, VerifyOptions common,
             int threads, bool alone, std::function<std::string(const Case&)> command)
    : size_(size),
      case_of_(std::move(case_of)),
      common_(std::move(common)),
      alone_(alone),
      threads_(threads),
      command_(std::move(command)) {}

CaseAnswer Batch::answer(ToRun one) {
  const Running running(command_(one.c));
  VerifyOptions options = common_;
  options.threads = alone_ ? threads_ : 1;
  options.at_once = alone_ ? 1 : threads_;
  const auto begin = std::chrono::steady_clock::now();
  CaseAnswer answered;
  try {
    answered.judgement = one.plan != nullptr ? verify_plan(*one.plan, memo_, options)
                                             : verify_case(one.c, memo_, options);
  } catch (...) {
    if (alone_) throw;
    answered.judgement = ended_by(std::current_exception());
  }
  answered.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return answered;
}

void Batch::run(const std::function<void(std::size_t, const Case&, const CaseAnswer&)>& done) {
  Threads pool(alone_ ? 1 : threads_);
  std::mutex mutex;
  std::size_t next = 0;
  std::map<std::size_t, std::pair<Case, CaseAnswer>> waiting;  // for an earlier one
  pool.for_each(static_cast<std::int64_t>(size_), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    ToRun one = case_of_(at);
    const Case c = one.c;
    CaseAnswer answered = answer(std::move(one));
    const std::lock_guard lock(mutex);
    waiting.emplace(at, std::pair(c, std::move(answered)));
    for (auto first = waiting.begin(); first != waiting.end() && first->first == next;
         first = waiting.erase(first), ++next)
      done(next, first->second.first, first->second.second);
  });
}

}  // namespace shardproof::tools
