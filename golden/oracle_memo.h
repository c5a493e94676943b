#pragma once

#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "engine/run/case.h"
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
    IntTensor prompt;
    oracle::Answer answer;
  };

  /// `given` replaces the generated weights; the same object for every call. Throws what the
  /// generator and oracle::run throw.
  std::shared_ptr<const Known> get(const Case& c, const Weights* given = nullptr);

 private:
  static constexpr std::size_t kKept = 16;
  using Entry = std::pair<std::string, std::shared_future<std::shared_ptr<const Known>>>;
  std::mutex mutex_;
  std::list<Entry> entries_;  // latest first
};

}  // namespace shardproof
