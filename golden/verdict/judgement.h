#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/shards/finding.h"
#include "golden/bounds/number/tightness.h"
#include "golden/compare/comparison.h"
#include "golden/verdict/drift.h"
#include "golden/verdict/field_equality.h"
#include "golden/verdict/from_plain.h"

namespace shardproof {

/// The verdicts. Missing evidence is never a pass, and neither is a run that could not continue.
enum class Verdict { equal, different, not_judged, refused };
std::string_view to_string(Verdict verdict);
std::ostream& operator<<(std::ostream& out, Verdict verdict);

/// The result of judging one case.
struct Judgement {
  Verdict verdict = Verdict::not_judged;
  std::int64_t tensors = 0;   ///< values compared
  std::int64_t elements = 0;  ///< elements compared, every replica counted
  /// The detectors' findings, in the order of the run: the first, or all (golden/verify/verify.h).
  std::vector<Finding> findings;
  std::string missing;                      ///< why the case was not judged
  std::vector<std::string> notes;           ///< what an equal run does not prove
  std::optional<Drift> drift;               ///< of an f32 run relative to the exact one
  std::optional<bounds::Tightness> bounds;  ///< of an f32 run, by op
  std::optional<FromPlain> from_plain;      ///< for a base-2 model with generated weights
  std::optional<FieldEquality> field;       ///< for a field run with all values equal
  /// For a case run in the exact and in the field regime: what both results mean together.
  std::string reading;

  /// Returns the first wrong value if that is the first finding, otherwise null.
  const Finding* difference() const&;
  const Finding* difference() const&& = delete;  // it points into the judgement
  /// Returns the detector of a difference that is not in values: "types", "replicas"; otherwise "".
  std::string detector() const;
  /// Returns that detector's message, why the case was not judged, or why its run was refused.
  std::string reason() const;
  /// Returns one line: the difference, or the reason after the detector's name.
  std::string explanation() const;
};

/// Returns the verdict of these findings on a run that ended: refused if the first one is about the
/// run itself, otherwise different; `otherwise` if there are none.
Verdict verdict_of(const std::vector<Finding>& findings, Verdict otherwise);

/// Fills in a finding about values: chip, index, both values and reach come from the mismatch.
Finding with_mismatch(Finding found, const Mismatch& mismatch);

}  // namespace shardproof
