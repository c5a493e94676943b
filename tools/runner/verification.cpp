#include "tools/runner/verification.h"

#include <fmt/format.h>

#include <utility>

#include "tools/runner/batch.h"
#include "tools/runner/crash_report.h"
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
  const auto case_of = [&](std::size_t i) {
    return ToRun{selected.cases[i],
                 selected.plans.empty() ? nullptr : std::exchange(selected.plans[i], nullptr)};
  };
  const auto command = [&](const Case& c) { return source_.command(c); };
  Batch(selected.cases.size(), case_of, common, threads, cases_ == 1, command)
      .run([&](std::size_t, const Case& c, const CaseAnswer& answered) {
        if (judged) judged(answered.judgement);
        add(c, answered);
      });
}

bool Verification::run_random(std::uint64_t seed, int threads, const VerifyOptions& common) {
  cases::Coverage coverage;
  const auto case_of = [&](std::size_t i) {
    // While a case is drawn there is no case to name in a crash: name the run up to it.
    const Running running(fmt::format("shardproof verify --cases {} --seed {}", i + 1, seed));
    return random_case(seed, i, common.until);
  };
  const auto command = [&](const Case& c) { return source_.command(c); };
  Batch(static_cast<std::size_t>(cases_), case_of, common, threads, cases_ == 1, command)
      .run([&](std::size_t, const Case& c, const CaseAnswer& answered) {
        coverage.add(c);
        add(c, answered);
      });
  return end(&coverage, {});
}

void Verification::add(const Case& c, const CaseAnswer& answered) {
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
  // Flushed under the lock, before an interrupt can end the process: main's own flush could be too
  // late.
  std::fflush(out_);
  return ending.passed();
}

void Verification::interrupted(int signal) {
  const std::lock_guard lock(mutex_);
  if (!closed_) {
    closed_ = true;
    const auto hidden = progress_.hide();
    fmt::print(out_, "{}", report_->interrupted({tally_, seconds()}, signal));
  }
  std::fflush(out_);  // printed output may still be buffered
}

}  // namespace shardproof::tools
