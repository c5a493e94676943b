#pragma once

#include <string>

#include "engine/layout/torus.h"
#include "engine/program/execute.h"
#include "engine/program/program.h"
#include "weights/base/error.h"

namespace shardproof {

/// The step between two slices: a layer's caches leave the chips of the one and arrive on those of
/// the other, in the layouts in which a program there takes them (docs/split.md).
class CacheCrossing {
 public:
  /// To the inputs of `program`, which runs on the chips of `target` as `execution` says. They
  /// outlive this.
  CacheCrossing(const Program& program, const Torus& target, const Execution& execution)
      : program_(program), target_(target), execution_(execution) {}

  /// The cache as the program's input of this role ("k_cache", "prefix v_cache"). The chips that
  /// held it need it no more: with hazards.poison it is poisoned. What goes wrong is a finding of
  /// the run, or without findings an Error: what crossing_moves and transfer throw, "transfer_c1"
  /// (a fault hook made a plan that cannot be carried out). Null where a finding ended the run.
  /// Throws what the fault hook throws.
  SharedValue of(const SharedValue& cache, const std::string& role) const;

 private:
  Sharded arrived(const Sharded& cache, const ValueDecl& as) const;

  const Program& program_;
  const Torus& target_;
  const Execution execution_;
};

}  // namespace shardproof
