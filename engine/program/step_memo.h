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

/// What one op of a program makes of operands of these types on this torus: the types of its
/// results and, of a collective or slice, the plan by which pieces move. Of the types that it met
/// last: layers have the same, and so have most ops of one pass and the next.
class OpMemo {
 public:
  /// Whether it is of operands of these types.
  bool is_of(const std::vector<SharedValue>& args) const;
  /// From now on it is of these.
  void begin(const std::vector<SharedValue>& args, std::vector<Type> results);

  const std::vector<Type>& results() const { return results_; }
  /// Null where none is kept.
  const std::shared_ptr<const Moves>& plan() const { return plan_; }
  /// A plan of many pieces, which cost more memory than time, is not kept.
  void keep(const std::shared_ptr<const Moves>& plan);

 private:
  Torus torus_;
  std::vector<Type> operands_, results_;
  std::shared_ptr<const Moves> plan_;
};

/// Those of all ops of one program, for a program that runs often: a run after the other.
struct ProgramMemo {
  explicit ProgramMemo(const Program& program) : ops(program.ops.size()) {}

  std::vector<OpMemo> ops;  ///< in the order of the program's
};

}  // namespace shardproof
