#pragma once

#include <set>
#include <string>

#include "engine/program/execute.h"
#include "golden/scalar/model.h"
#include "golden/verdict/drift.h"
#include "golden/verdict/judgement.h"

namespace shardproof {

/// Observes an f32 run and compares every value with the scalar model's, bit for bit, on every
/// chip: a complete value with the chip's block of the tensor, a partial sum with the block of the
/// part at the chip's coordinates on the partial axes.
class ScalarJudge : public Observer {
 public:
  /// All references must outlive the judge. Drift is measured from `exact`; differences are added
  /// to `findings`.
  ScalarJudge(const RunPlan& plan, const Weights& weights, const IntTensor& prompt,
              const oracle::Answer& exact, Findings& findings);

  /// From now on these threads compute and compare values, between the steps of the run; they must
  /// outlive it.
  void use(Threads& threads) {
    threads_ = &threads;
    model_.use(threads);
  }

  /// Throws what ScalarModel::next_pass throws.
  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override;
  void observe_generated(const IntTensor& generated);

  /// Returns the verdict: not judged unless every value of the model was met.
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
