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

/// The answers. Missing evidence is never a pass, and neither is a run that could not go on.
enum class Verdict { equal, different, not_judged, refused };
std::string_view to_string(Verdict verdict);
std::ostream& operator<<(std::ostream& out, Verdict verdict);

/// The answer to one case.
struct Judgement {
  Verdict verdict = Verdict::not_judged;
  std::int64_t tensors = 0;   ///< values compared
  std::int64_t elements = 0;  ///< elements compared, every replica counted
  /// What the detectors found, in the order of the run: the first, or all (golden/verify/verify.h).
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

}  // namespace shardproof
