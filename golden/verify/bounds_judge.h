#pragma once

#include <map>
#include <string>

#include "engine/program/execute.h"
#include "engine/run/plan.h"
#include "golden/bounds/number/tightness.h"
#include "golden/bounds/op/ops.h"
#include "golden/verdict/judgement.h"

namespace shardproof {

/// Watches an f32 run and holds every result of an op against the interval that follows from the
/// op's own operands, as the chips had them: on every chip, replicas and partial sums included.
/// Nothing of an interval comes from another run, so an error of one step blames no later one.
class BoundsJudge : public Observer {
 public:
  /// Both outlive the judge. What lies outside is added to `findings`.
  BoundsJudge(const RunPlan& plan, Findings& findings);

  /// From now on bounds are made by these threads, between the steps of the run; they outlive it.
  void use(Threads& threads) { threads_ = &threads; }

  /// Throws what bounds::allowed throws.
  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override;

  const bounds::Tightness& tightness() const { return tightness_; }

 private:
  void enter(const Scope& scope, const Program& program);

  const RunPlan& plan_;
  Findings& findings_;
  PassPlan pass_;
  std::int64_t next_ = 0;                        // pass
  std::string program_;                          // that is running, by layer
  std::map<std::string, scalar::Value> values_;  // of it, as the chips have them
  bounds::Tightness tightness_;
  Threads* threads_ = nullptr;
};

}  // namespace shardproof
