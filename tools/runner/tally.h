#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/case.h"
#include "golden/verdict/judgement.h"

namespace shardproof::tools {

/// Totals over the answers of a run of many cases.
struct Tally {
  struct Failure {
    Case c;
    Verdict verdict;
  };

  std::int64_t equal = 0, different = 0, not_judged = 0, refused = 0;
  std::int64_t tensors = 0, elements = 0;
  Drift drift;  ///< worst of all f32 cases
  std::int64_t drifting = 0;
  bounds::Tightness bounds;  ///< over all f32 cases
  std::int64_t bounded = 0;
  FromPlain from_plain;  ///< worst of all base-2 cases
  std::int64_t folded = 0;
  std::int64_t of_field = 0;                               ///< cases found equal as formulas
  std::int64_t of_these_ids = 0;                           ///< formula-equal, tokens share ids
  std::optional<FieldEquality> weakest;                    ///< field equality of the largest bound
  std::map<std::string, std::vector<std::int64_t>> notes;  ///< case numbers by note
  std::optional<Failure> first_failure;

  std::int64_t cases() const { return equal + different + not_judged + refused; }
  void add(const Case& c, const Judgement& j);
  /// Prints "676 equal, 0 different, 0 not judged, 0 refused".
  std::string to_string() const;
};

}  // namespace shardproof::tools
