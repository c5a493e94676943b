#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "golden/verify/verify.h"
#include "tools/runner/case_source.h"
#include "tools/runner/progress.h"
#include "tools/runner/report.h"
#include "tools/runner/selection.h"

namespace shardproof::tools {

/// A run of many cases under the judge, several at once, which is reported as it goes on and at its
/// end. Safe to interrupt from another thread. What it prints it throws of as fmt::print does:
/// std::system_error.
class Verification {
 public:
  /// Of `cases` cases, reported to `out`.
  Verification(CaseSource source, std::int64_t cases, std::unique_ptr<Report> report,
               std::FILE* out = stdout);

  /// Runs these, which may be some of all; `common` goes for each. `judged` is told of each answer,
  /// in order, before it is reported. Throws what verify_case throws of a case that is alone.
  void run(Selection selected, const VerifyOptions& common, int threads,
           const std::function<void(const Judgement&)>& judged = {});

  /// The same of random cases, which are drawn as they are needed; then the end.
  bool run_random(std::uint64_t seed, int threads, const VerifyOptions& common = {});

  /// Reports the end; whether every case was equal. `skipped`: cases that are not legal, and why.
  bool finish(const std::vector<std::string>& skipped = {});

  /// Reports what there is so far; nothing is reported afterwards.
  void interrupted(int signal);

  const Tally& tally() const { return tally_; }

 private:
  void add(const Case& c, const Answered& answered);
  bool end(const cases::Coverage* coverage, const std::vector<std::string>& skipped);
  double seconds() const;

  CaseSource source_;
  std::int64_t cases_;
  std::unique_ptr<Report> report_;
  std::FILE* out_;
  Progress progress_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  bool closed_ = false;
  Tally tally_;
};

}  // namespace shardproof::tools
