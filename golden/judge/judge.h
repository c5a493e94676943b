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

/// Observes a run and compares every value with the oracle's, bit for bit, under the layout that
/// the program declares: a complete value on every chip, replicas included; partial sums by their
/// exact total over the partial axes, and on a few elements of each shard by the exact terms of
/// their origins.
class Judge : public Observer {
 public:
  /// `weights` as stored for the run; `padding` is the run's. Differences are added to `findings`.
  /// All references must outlive the judge.
  Judge(const oracle::Answer& answer, const Weights& weights, Findings& findings,
        DimPadding padding = {});
  /// Judges a run of the field regime, which generates no tokens.
  Judge(const oracle::field::Answer& answer, Findings& findings, DimPadding padding = {});

  /// From now on these threads compare values, between the steps of the run; they must outlive it.
  void use(Threads& threads) { threads_ = &threads; }

  /// Throws Error("judge_c1", ...) if a program asks for a value that the model does not have.
  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override;

  /// Compares the run's result, int32 [B, gen], with the oracle's tokens.
  void observe_generated(const IntTensor& generated);

  /// Returns the verdict of a run that has ended: not judged unless every checkpoint of the oracle
  /// was met, complete, in every pass.
  Judgement finish() const;

 private:
  std::function<Expected(const Scope&, const Role&, const Shape&)> expected_;
  DimPadding padding_;
  std::vector<std::string> checkpoints_;    // ids of all checkpoints that must be met
  const oracle::Answer* floats_ = nullptr;  // null in the field regime
  Findings& findings_;
  Judgement judgement_;
  std::set<std::string> met_;
  Threads* threads_ = nullptr;
};

}  // namespace shardproof
