#include "tools/runner/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/runner/batch.h"
#include "tools/runner/smallest_failure.h"

namespace shardproof::tools {

Verification::Verification(CaseSource source, std::int64_t cases, std::unique_ptr<Report> report,
                           std::FILE* out)
    : source_(std::move(source)),
      cases_(cases),
      report_(std::move(report)),
      out_(out),
      progress_(cases, "cases") {
  fmt::print(out_, "{}", report_->begin());
}

double Verification::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Verification::run(Selection selected, const VerifyOptions& common, int threads,
                       const std::function<void(const Judgement&)>& judged) {
  const std::vector<Case>& cases = selected.cases;
  Batch(cases, std::move(selected.plans), common, threads, cases_ == 1, [&](const Case& c) {
    return source_.command(c);
  }).run([&](std::size_t i, const Answered& answered) {
    if (judged) judged(answered.judgement);
    add(cases[i], answered);
  });
}

bool Verification::run_random(std::uint64_t seed, int threads, const VerifyOptions& common) {
  // So few that their plans are small beside what the threads run, and enough for each thread.
  const std::int64_t at_once = std::clamp<std::int64_t>(64 * std::int64_t{threads}, 64, 512);
  cases::Coverage coverage;
  for (std::int64_t begin = 0; begin < cases_; begin += at_once)
    run(random_cases(seed, begin, std::min(begin + at_once, cases_), coverage, common.until),
        common, threads);
  return end(&coverage, {});
}

void Verification::add(const Case& c, const Answered& answered) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  tally_.add(c, answered.judgement);
  progress_.step();
  const std::string text = report_->answered(c, answered, tally_);
  if (text.empty()) return;
  const auto hidden = progress_.hide();
  fmt::print(out_, "{}", text);
  std::fflush(out_);
}

bool Verification::finish(const std::vector<std::string>& skipped) { return end(nullptr, skipped); }

bool Verification::end(const cases::Coverage* coverage, const std::vector<std::string>& skipped) {
  std::string least;
  if (tally_.first_failure)
    least = source_.command(coverage != nullptr ? smallest_failure(*tally_.first_failure, source_)
                                                : tally_.first_failure->c);
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  closed_ = true;
  const auto hidden = progress_.hide();
  const Ending ending{tally_, seconds(), coverage, skipped, least};
  fmt::print(out_, "{}", report_->end(ending));
  // While no interrupt can come between: main's own flush would be too late for one.
  std::fflush(out_);
  return ending.held();
}

void Verification::interrupted(int signal) {
  const std::lock_guard lock(mutex_);
  if (!closed_) {
    closed_ = true;
    const auto hidden = progress_.hide();
    fmt::print(out_, "{}", report_->interrupted({tally_, seconds()}, signal));
  }
  std::fflush(out_);  // all may be printed, but not yet written
}

}  // namespace shardproof::tools
