#pragma once

#include <set>
#include <string>

#include "engine/program/execute.h"
#include "golden/scalar/model.h"
#include "golden/verdict/drift.h"
#include "golden/verdict/judgement.h"

namespace shardproof {

/// Watches an f32 run and compares every value with the scalar model's, bit for bit, on every chip:
/// a complete value by the chip's block of the tensor, a partial one by the block of the part that
/// the chip's place on the partial axes stands for.
class ScalarJudge : public Observer {
 public:
  /// All outlive the judge. `exact` is what drift is measured from; what differs is added to
  /// `findings`.
  ScalarJudge(const RunPlan& plan, const Weights& weights, const IntTensor& prompt,
              const oracle::Answer& exact, Findings& findings);

  /// From now on values are made and compared by these threads, between the steps of the run; they
  /// outlive it.
  void use(Threads& threads) {
    threads_ = &threads;
    model_.use(threads);
  }

  /// Throws what ScalarModel::next_pass throws.
  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override;
  void observe_generated(const IntTensor& generated);

  /// Not judged unless every value of the model was met.
  Judgement finish();

 private:
  void next_pass();

  ScalarModel model_;
  DriftMeter meter_;
  Findings& findings_;
  Judgement judgement_;
  std::set<std::string> met_;  // in this pass
  Threads* threads_ = nullptr;
};

}  // namespace shardproof
