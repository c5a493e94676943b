#pragma once

#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "engine/run/plan.h"
#include "oracle/oracle.h"
#include "weights/error.h"
#include "weights/weights.h"

namespace shardproof {

/// The oracle's answers, computed once for all cases that ask the same: they do not depend on the
/// torus or a strategy. Keeps the latest few. Safe to share between threads.
class OracleMemo {
 public:
  struct Known {
    Weights weights;  ///< as stored for the run
    Weights stored;   ///< as the oracle keeps them, which weights of a run must be
    IntTensor prompt;
    oracle::Answer answer;
  };

  /// The answer for the passes of the plan. `given` replaces the generated weights; the same object
  /// for every call. Throws what the generator and oracle::run throw.
  std::shared_ptr<const Known> get(const RunPlan& plan, const Weights* given = nullptr);
  /// The same of a case that is not planned: for its own passes.
  std::shared_ptr<const Known> get(const Case& c, const Weights* given = nullptr);

 private:
  std::shared_ptr<const Known> get(const Case& c, const Passes& passes, const Weights* given);

  static constexpr std::size_t kKept = 16;
  struct Entry {
    std::string key;  ///< what the answer depends on besides
    Passes passes;
    std::shared_future<std::shared_ptr<const Known>> known;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // latest first
};

}  // namespace shardproof
