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

/// Runs many cases under the judge, concurrently, and reports during the run and at its end. May be
/// interrupted from another thread. Throws std::system_error on output failure, as fmt::print.
class Verification {
 public:
  /// `cases` is the number of all cases; reports go to `out`.
  Verification(CaseSource source, std::int64_t cases, std::unique_ptr<Report> report,
               std::FILE* out = stdout);

  /// Runs these cases, possibly a part of all; `common` applies to each. `judged` receives each
  /// answer, in order, before it is reported. Throws what verify_case throws for a lone case.
  void run(Selection selected, const VerifyOptions& common, int threads,
           const std::function<void(const Judgement&)>& judged = {});

  /// Runs random cases, drawn as needed, and reports the end. Returns whether every case was equal
  /// and the coverage sufficient.
  bool run_random(std::uint64_t seed, int threads, const VerifyOptions& common = {});

  /// Reports the end; returns whether every case was equal. `skipped`: illegal cases, with reasons.
  bool finish(const std::vector<std::string>& skipped = {});

  /// Reports the results so far; nothing is reported afterwards.
  void interrupted(int signal);

  const Tally& tally() const { return tally_; }

 private:
  void add(const Case& c, const CaseAnswer& answered);
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
