#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "engine/collectives/moves.h"
#include "engine/collectives/summation.h"
#include "engine/ops/local_ops.h"
#include "engine/ops/reductions.h"
#include "engine/ops/row_tokens.h"
#include "engine/ops/sampling.h"
#include "engine/program/execute.h"
#include "engine/program/program.h"
#include "engine/program/step_memo.h"
#include "weights/base/error.h"

namespace shardproof {

/// Wraps a fault hook's own exception: it goes to the caller and is not a finding of the step.
struct HookFailed {
  std::exception_ptr error;
};

/// The execution of one op by execute().
class Step {
 public:
  /// `memo` is this op's, or null.
  Step(const Program& program, const Op& op, std::vector<SharedValue> args,
       const Execution& execution, OpMemo* memo = nullptr)
      : program_(program),
        op_(op),
        args_(std::move(args)),
        execution_(execution),
        memo_(memo),
        threads_(execution.threads) {}

  /// Lets the op leave its partial sums lazy if a reduction over these axes completes them.
  void allow_lazy_over(const Axes& axes) { reduced_ = axes; }
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
  /// Number of ids in the block of a candidate, padding included.
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
  Sharded largest_of_chips(const Moves& m) const;
  bool has_padding(std::int64_t L) const;
  std::optional<KeptPlaces> last_tokens() const;
  std::optional<RowTokens> row_tokens(std::int64_t L) const;
  Sharded last();
  Sharded product() const;
  PartialSums partial_values() const;
  Present present() const;
  Sharded where(Sharded value) const;
  Sharded local_reduction() const;
  Sharded mapped() const;
  Attention attention();
  Threshold threshold();
  std::vector<const Sharded*> vectors() const;

  const Program& program_;
  const Op& op_;
  std::vector<SharedValue> args_;
  const Execution& execution_;
  OpMemo* memo_;  ///< of the operands' types once run() begins; null: none, or types are given
  Threads& threads_;
  std::vector<Type> types_;  ///< result types, if they are inferred and there is no memo
  std::optional<Axes> reduced_;
  std::int64_t received_ = 0;
};

}  // namespace shardproof
