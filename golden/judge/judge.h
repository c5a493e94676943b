#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/program/execute.h"
#include "engine/shards/finding.h"
#include "golden/judge/expected.h"
#include "golden/verdict/judgement.h"
#include "oracle/model/oracle.h"
#include "weights/base/error.h"

namespace shardproof {

/// Watches a run and compares every value with the oracle's, bit for bit, by the layout that the
/// program declares: a complete value on every chip, replicas included; a partial by its exact sum
/// over the partial axes, and on a few elements of each shard by the exact terms of its origins.
class Judge : public Observer {
 public:
  /// `weights` as stored for the run. What differs is added to `findings`. All outlive the judge.
  /// `padding` is what the run pads.
  Judge(const oracle::Answer& answer, const Weights& weights, Findings& findings,
        DimPadding padding = {});
  /// Of a run of the field regime, in which no tokens are generated.
  Judge(const oracle::field::Answer& answer, Findings& findings, DimPadding padding = {});

  /// From now on values are compared by these threads, between the steps of the run; they outlive
  /// it.
  void use(Threads& threads) { threads_ = &threads; }

  /// Throws Error("judge_c1", ...) if a program asks for a value that the model does not have.
  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override;

  /// Compares the run's result, int32 [B, gen], with the oracle's tokens.
  void observe_generated(const IntTensor& generated);

  /// The verdict of a run that has ended: not judged unless every checkpoint of the oracle was met,
  /// complete, in every pass.
  Judgement finish() const;

 private:
  std::function<Expected(const Scope&, const Role&, const Shape&)> expected_;
  DimPadding padding_;
  std::vector<std::string> checkpoints_;    // by id, all that must be met
  const oracle::Answer* floats_ = nullptr;  // of another regime than field
  Findings& findings_;
  Judgement judgement_;
  std::set<std::string> met_;
  Threads* threads_ = nullptr;
};

}  // namespace shardproof
