#pragma once

#include <string>

#include "engine/layout/torus.h"
#include "engine/program/execute.h"
#include "engine/program/program.h"
#include "weights/base/error.h"

namespace shardproof {

/// Moves a layer's caches from the chips of one slice to those of another, in the layouts in which
/// a program there takes them (docs/split.md).
class CacheCrossing {
 public:
  /// Moves caches to the inputs of `program`, which runs on the chips of `target` as `execution`
  /// says. Both must outlive this object.
  CacheCrossing(const Program& program, const Torus& target, const Execution& execution)
      : program_(program), target_(target), execution_(execution) {}

  /// Returns the cache as the program's input of this role ("k_cache", "prefix v_cache"), or
  /// nullptr if a finding ended the run. The sending chips no longer need it: with hazards.poison
  /// it is poisoned. Failures are findings, or without `findings` Errors: what crossing_moves and
  /// transfer throw, "transfer_c1" (a fault hook made a plan that cannot be executed). Throws what
  /// the fault hook throws.
  SharedValue of(const SharedValue& cache, const std::string& role) const;

 private:
  Sharded arrived(const Sharded& cache, const ValueDecl& as) const;

  const Program& program_;
  const Torus& target_;
  const Execution execution_;
};

}  // namespace shardproof
