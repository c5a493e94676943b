#pragma once

#include <optional>
#include <set>
#include <string>

#include "engine/program/execute.h"
#include "golden/drift.h"
#include "oracle/oracle.h"
#include "weights/error.h"

namespace shardproof {

/// The three answers. Missing evidence is never a pass.
enum class Verdict { equal, different, not_judged };
std::string_view to_string(Verdict verdict);

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

  std::string to_string() const;
};

struct Judgement {
  Verdict verdict = Verdict::not_judged;
  std::int64_t tensors = 0;   ///< values compared
  std::int64_t elements = 0;  ///< elements compared, every replica counted
  std::optional<Difference> difference;
  std::string reason;          ///< why it was not judged
  std::optional<Drift> drift;  ///< of an f32 run from the exact one

  /// One line: the difference, or what was not judged.
  std::string explanation() const;
};

/// Where a chip's block of a dim begins and what it spans, by the judge's own reading of the
/// notation: in `F_zyx` chip (x,y,z) holds block (z·Y+y)·X+x. Not the engine's: a layout bug shared
/// by accused and judge would acquit.
Shape judged_offset(const Layout& layout, const Shape& shape, const Torus& torus, int chip);

/// Watches a run and holds every value against the oracle, bit for bit, by the layout that the
/// program declares: a complete value on every chip, replicas included; a partial by its exact sum
/// over the partial axes, and on a few elements of each shard by the exact terms of its origins.
class Judge : public Observer {
 public:
  /// Thrown to end the run at its first difference.
  struct Stop {};

  /// `weights` as stored for the run. All outlive the judge.
  Judge(const oracle::Answer& answer, const Weights& weights);

  /// Throws Stop, and Error("judge_c1", ...) if the model has no such value as is declared.
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
