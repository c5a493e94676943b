#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "engine/collectives/moves.h"
#include "engine/collectives/summation.h"
#include "engine/ops/local_ops.h"
#include "engine/ops/row_tokens.h"
#include "engine/ops/sampling.h"
#include "engine/program/execute.h"
#include "engine/program/program.h"
#include "engine/program/step_memo.h"
#include "weights/base/error.h"

namespace shardproof {

/// A fault hook's own exception, which is the caller's and no finding of the step it ends.
struct HookFailed {
  std::exception_ptr error;
};

/// One op of a program being run: what execute() does with it.
class Step {
 public:
  /// `memo` of this op, or null.
  Step(const Program& program, const Op& op, std::vector<SharedValue> args,
       const Execution& execution, OpMemo* memo = nullptr)
      : program_(program),
        op_(op),
        args_(std::move(args)),
        execution_(execution),
        memo_(memo),
        threads_(execution.threads) {}

  /// From now on partial sums that it yields may be left unmade if a reduction over these axes
  /// completes them.
  void leave_unmade_for(const Axes& axes) { reduced_ = axes; }
  std::vector<Sharded> run();

  /// Elements that crossed between chips.
  std::int64_t received() const { return received_; }

 private:
  const Sharded& arg(std::size_t i) const { return *args_[i]; }
  const Type& to() const {
    if (execution_.types != nullptr) return execution_.types->at(op_.results[0].name);
    return memo_ != nullptr ? memo_->results()[0] : types_[0];
  }
  std::size_t dim(char letter) const { return arg(0).layout().find(letter).value(); }
  std::int64_t V() const { return execution_.config.V; }
  /// Ids that a candidate is the best of, padded ones included.
  std::int64_t block_of_ids() const {
    return (execution_.placed == nullptr ? V() : execution_.placed->V) / arg(0).local()[1];
  }

  std::vector<Type> inferred() const;
  std::vector<Sharded> values();
  Moves moves() const;
  std::shared_ptr<const Moves> plan();
  std::shared_ptr<const Moves> as_executed(std::shared_ptr<const Moves> plan);
  Summation summation() const;
  Sharded collective();
  bool has_padding(std::int64_t L) const;
  std::optional<KeptPlaces> last_tokens() const;
  std::optional<RowTokens> row_tokens(std::int64_t L) const;
  Sharded last();
  Sharded product() const;
  PartialValues partial_values() const;
  Attention attention();
  Threshold threshold();
  std::vector<const Sharded*> vectors() const;

  const Program& program_;
  const Op& op_;
  std::vector<SharedValue> args_;
  const Execution& execution_;
  OpMemo* memo_;  ///< of the operands' types as soon as it runs; null: none, or types are given
  Threads& threads_;
  std::vector<Type> types_;  ///< of the results, where they are inferred and there is no memo
  std::optional<Axes> reduced_;
  std::int64_t received_ = 0;
};

}  // namespace shardproof
