#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "golden/verify.h"

namespace shardproof::tools {

/// The answer to one case of a batch, and what it took.
struct Answered {
  Judgement judgement;
  double seconds = 0.0;  ///< by the wall clock
};

/// Plans of cases, each given up when it has been run.
using Plans = std::vector<std::shared_ptr<const TypedPlan>>;

/// Runs cases, several at once when there are several, and hands each answer over in order. A case
/// whose run ends by an exception is answered like any other (ended_by), and the batch goes on;
/// only a caller's mistake in a case that is alone is thrown.
class Batch {
 public:
  /// `common` goes for each case; an observer or a layer of its own only for one case alone.
  /// `alone`: there are no other cases. `command` is what runs a case again, for the report of a
  /// crash.
  /// `plans` of all the cases, or none: then each is planned as it is run.
  Batch(const std::vector<Case>& cases, Plans plans, VerifyOptions common, int threads, bool alone,
        std::function<std::string(const Case&)> command);

  void run(const std::function<void(std::size_t, const Answered&)>& done);

 private:
  Answered answer(std::size_t i);

  const std::vector<Case>& cases_;
  Plans plans_;
  VerifyOptions common_;
  bool alone_;
  int threads_;
  std::function<std::string(const Case&)> command_;
  OracleMemo memo_;
  std::vector<std::optional<Answered>> answers_;
};

}  // namespace shardproof::tools
