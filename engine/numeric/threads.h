#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace shardproof {

/// A pool that maps a function over chips. Work items are independent, so results never depend on
/// the number of threads or on who runs what.
class Threads {
 public:
  /// `count` ≥ 1 threads, the caller's included.
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  /// Calls body(i) once for each i in [0, n), in any order, and returns when all are done. The
  /// first exception a body throws is rethrown here.
  void for_each(std::int64_t n, const std::function<void(std::int64_t)>& body);

  /// Makes for_each visit in a random order, a new one each time, all from this seed; or, with
  /// nullopt, in ascending order. A hazard: results never depend on it.
  void shuffle(std::optional<std::uint64_t> seed) { order_ = seed; }

  /// Sets whether chips that read the same buffers share one result
  /// (engine/collectives/chip_groups.h); the default is true.
  void share(bool results) { shares_ = results; }
  bool shares() const { return shares_; }

 private:
  void visit(std::int64_t n, const std::function<void(std::int64_t)>& body);

  struct Pool;
  bool shares_ = true;
  std::optional<std::uint64_t> order_;  // the random state, advanced by every for_each
  std::unique_ptr<Pool> pool_;          // null for one thread
};

/// Returns how many threads the machine runs at once, at least 1.
int machine_threads();

/// A pool of the calling thread alone.
Threads& calling_thread();

}  // namespace shardproof
