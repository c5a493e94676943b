#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "golden/verify/verify.h"

namespace shardproof::tools {

/// Judgement of one case of a batch, and its duration.
struct CaseAnswer {
  Judgement judgement;
  double seconds = 0.0;  ///< wall clock
};

/// Plans of cases, each released once it has run.
using Plans = std::vector<std::shared_ptr<const TypedPlan>>;

/// A case, and its plan if already made; otherwise the case is planned when run.
struct ToRun {
  Case c;
  std::shared_ptr<const TypedPlan> plan = nullptr;
};

/// Runs cases, concurrently if there are several, and reports answers in order. A case whose run
/// throws is answered like any other (ended_by), and the batch continues; only a caller's mistake
/// in a lone case is rethrown.
class Batch {
 public:
  /// `case_of` makes each of `size` cases once, in the thread that runs it; it is called
  /// concurrently, and run() rethrows what it throws. `common` applies to each case; it may have an
  /// observer or a layer only for a lone case. `alone`: there are no other cases. `command` returns
  /// the command that reruns a case, for crash reports.
  Batch(std::size_t size, std::function<ToRun(std::size_t)> case_of, VerifyOptions common,
        int threads, bool alone, std::function<std::string(const Case&)> command);

  void run(const std::function<void(std::size_t, const Case&, const CaseAnswer&)>& done);

 private:
  CaseAnswer answer(ToRun one);

  std::size_t size_;
  std::function<ToRun(std::size_t)> case_of_;
  VerifyOptions common_;
  bool alone_;
  int threads_;
  std::function<std::string(const Case&)> command_;
  OracleMemo memo_;
};

}  // namespace shardproof::tools
