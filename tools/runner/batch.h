#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "golden/verify/verify.h"

namespace shardproof::tools {

/// The answer to one case of a batch, and what it took.
struct Answered {
  Judgement judgement;
  double seconds = 0.0;  ///< by the wall clock
};

/// Plans of cases, each given up when it has been run.
using Plans = std::vector<std::shared_ptr<const TypedPlan>>;

/// A case, and its plan where that is made already; else it is planned as it is run.
struct ToRun {
  Case c;
  std::shared_ptr<const TypedPlan> plan = nullptr;
};

/// Runs cases, several at once when there are several, and hands each answer over in order. A case
/// whose run ends by an exception is answered like any other (ended_by), and the batch goes on;
/// only a caller's mistake in a case that is alone is thrown.
class Batch {
 public:
  /// Of `size` cases. `case_of` makes each of its number, once, in the thread that runs it; it is
  /// called by several threads at once, and what it throws is thrown by run(). `common` goes for
  /// each case; an observer or a layer of its own only for one case alone. `alone`: there are no
  /// other cases. `command` is what runs a case again, for the report of a crash.
  Batch(std::size_t size, std::function<ToRun(std::size_t)> case_of, VerifyOptions common,
        int threads, bool alone, std::function<std::string(const Case&)> command);

  void run(const std::function<void(std::size_t, const Case&, const Answered&)>& done);

 private:
  Answered answer(ToRun one);

  std::size_t size_;
  std::function<ToRun(std::size_t)> case_of_;
  VerifyOptions common_;
  bool alone_;
  int threads_;
  std::function<std::string(const Case&)> command_;
  OracleMemo memo_;
};

}  // namespace shardproof::tools
