#pragma once

#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/program/execute.h"
#include "golden/compare/comparison.h"
#include "golden/drift.h"
#include "oracle/oracle.h"
#include "weights/error.h"

namespace shardproof {

/// The answers. Missing evidence is never a pass, and neither is a run that could not go on.
enum class Verdict { equal, different, not_judged, refused };
std::string_view to_string(Verdict verdict);
std::ostream& operator<<(std::ostream& out, Verdict verdict);

/// The first value that is not the oracle's.
struct Difference {
  std::string pass;        ///< "decode.1"
  std::string checkpoint;  ///< what the value was declared to be: "decode.1.layer0.gate"
  std::string step;        ///< the step's id: "decode.1.layer0.hr"
  std::string op;          ///< "reduce_scatter(h, F, x)"; "input" for what a program was handed
  std::string chip;        ///< "(1,0,2)"; of a partial, the first chip of the summed group
  Shape index;             ///< global
  std::string expected, actual;  ///< value and bits
  std::string where = {};        ///< "p.txt line 14: " of a program file
  /// None where the value has another shape or another number of elements than it must have.
  std::optional<Reach> reach = {};

  /// Takes over chip, index, both values and reach.
  void show(const Mismatch& mismatch);
  /// The first wrong element, in one line; the reach has texts of its own.
  std::string to_string() const;
};

struct Judgement {
  Verdict verdict = Verdict::not_judged;
  std::int64_t tensors = 0;              ///< values compared
  std::int64_t elements = 0;             ///< elements compared, every replica counted
  std::optional<Difference> difference;  ///< what the judge found
  /// What found a difference other than by its values: "types", "replicas"; else empty.
  std::string detector;
  /// What the detector said, why the case was not judged, or why its run was refused.
  std::string reason;
  std::vector<std::string> notes;  ///< what the run leaves unproved, though it is equal
  std::optional<Drift> drift;      ///< of an f32 run from the exact one

  /// One line: the difference, or the reason behind the detector's name.
  std::string explanation() const;
};

/// Watches a run and holds every value against the oracle, bit for bit, by the layout that the
/// program declares: a complete value on every chip, replicas included; a partial by its exact sum
/// over the partial axes, and on a few elements of each shard by the exact terms of its origins.
class Judge : public Observer {
 public:
  /// Thrown to end the run at its first difference.
  struct Stop {};

  /// `weights` as stored for the run. All outlive the judge.
  Judge(const oracle::Answer& answer, const Weights& weights);

  /// Throws Stop at the first difference, and Error("judge_c1", ...) if a program asks for a value
  /// that the model has not.
  void observe(const Scope& scope, const Program& program, const Op* op, const Result& declared,
               const Sharded& value) override;

  /// Holds the run's result, int32 [B, gen], against the oracle's tokens.
  void observe_generated(const IntTensor& generated);

  /// The verdict of a run that has ended: not judged unless every checkpoint of the oracle was met,
  /// complete, in every pass.
  Judgement finish() const;

 private:
  const oracle::Answer& answer_;
  const Weights& weights_;
  Judgement judgement_;
  std::set<std::string> met_;
};

}  // namespace shardproof
