#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/collectives/moves.h"
#include "engine/layout/type.h"
#include "engine/ops/einsum.h"
#include "engine/program/program.h"
#include "weights/base/error.h"

namespace shardproof {

/// Memo of one op for operands of given types on a torus: the types of its results and, for a
/// collective or slice, its transfer plan. Holds the last types only: all layers have the same, and
/// so do most ops of consecutive passes.
class OpMemo {
 public:
  /// Returns true if the memo is for operands of these types.
  bool is_of(const std::vector<SharedValue>& args) const;
  /// Restarts the memo for operands of these types.
  void begin(const std::vector<SharedValue>& args, std::vector<Type> results);

  const std::vector<Type>& results() const { return results_; }
  /// Returns null if no plan is kept.
  const std::shared_ptr<const Moves>& plan() const { return plan_; }
  /// Keeps the plan unless it has so many pieces that it costs more memory than it saves time.
  void keep(const std::shared_ptr<const Moves>& plan);

 private:
  Torus torus_;
  std::vector<Type> operands_, results_;
  std::shared_ptr<const Moves> plan_;
};

/// The memos of all ops of one program that runs often; its runs must not overlap.
struct ProgramMemo {
  explicit ProgramMemo(const Program& program) : ops(program.ops.size()) {}

  std::vector<OpMemo> ops;  ///< in the order of the program's ops
};

}  // namespace shardproof
