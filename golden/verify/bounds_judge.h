#pragma once

#include <map>
#include <string>

#include "engine/program/execute.h"
#include "engine/run/plan.h"
#include "golden/bounds/number/tightness.h"
#include "golden/bounds/op/ops.h"
#include "golden/verdict/judgement.h"

namespace shardproof {

/// Observes an f32 run and checks every result of an op against the interval that follows from the
/// op's own operands as the chips held them: on every chip, replicas and partial sums included. No
/// interval depends on another run, so an error in one step is not blamed on later ones.
class BoundsJudge : public Observer {
 public:
  /// Both references must outlive the judge. Values outside are added to `findings`.
  BoundsJudge(const RunPlan& plan, Findings& findings);

  /// From now on these threads compute bounds, between the steps of the run; they must outlive it.
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
  std::string program_;                          // the running program and its layer
  std::map<std::string, scalar::Value> values_;  // its values, as the chips hold them
  bounds::Tightness tightness_;
  Threads* threads_ = nullptr;
};

}  // namespace shardproof
