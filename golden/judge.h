#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/finding.h"
#include "engine/program/execute.h"
#include "golden/bounds/tightness.h"
#include "golden/compare/comparison.h"
#include "golden/drift.h"
#include "golden/expected.h"
#include "golden/field/equality.h"
#include "golden/from_plain.h"
#include "oracle/oracle.h"
#include "weights/error.h"

namespace shardproof {

/// The answers. Missing evidence is never a pass, and neither is a run that could not go on.
enum class Verdict { equal, different, not_judged, refused };
std::string_view to_string(Verdict verdict);
std::ostream& operator<<(std::ostream& out, Verdict verdict);

/// The answer to one case.
struct Judgement {
  Verdict verdict = Verdict::not_judged;
  std::int64_t tensors = 0;   ///< values compared
  std::int64_t elements = 0;  ///< elements compared, every replica counted
  /// What the detectors found, in the order of the run: the first, or all (golden/verify.h).
  std::vector<Finding> findings;
  std::string missing;                      ///< why the case was not judged
  std::vector<std::string> notes;           ///< what the run leaves unproved, though it is equal
  std::optional<Drift> drift;               ///< of an f32 run from the exact one
  std::optional<bounds::Tightness> bounds;  ///< of an f32 run, op by op
  std::optional<FromPlain> from_plain;      ///< of a base-2 model with generated weights
  std::optional<FieldEquality> field;       ///< of a run of the field regime that found all equal
  /// Of a case that ran in the exact and in the field regime what both together say.
  std::string reading;

  /// The first value that is not what it must be, if that is what was found first; else null.
  const Finding* difference() const&;
  const Finding* difference() const&& = delete;  // it is the judgement's own
  /// What found a difference other than by its values: "types", "replicas"; else empty.
  std::string detector() const;
  /// What that detector said, why the case was not judged, or why its run was refused.
  std::string reason() const;
  /// One line: the difference, or the reason after the detector's name.
  std::string explanation() const;
};

/// What these findings say of a run that ended: refused where the run itself is what was found
/// first, else different; `otherwise` if there are none.
Verdict verdict_of(const std::vector<Finding>& findings, Verdict otherwise);

/// A finding by values: chip, index, both values and reach are the mismatch's.
Finding with_mismatch(Finding found, const Mismatch& mismatch);

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
