#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/run/case.h"
#include "engine/strategies/strategy.h"

namespace shardproof::faults {

/// A case that mutants are planted in: small, on a torus with an odd axis, with unequal axes (but
/// for "cube", where one axis may stand for another without a crash), two layers, several chunks
/// and decode steps, grouped key/value heads, and no two shards equal.
struct FaultCase {
  std::string kind;      ///< "plain", "cube", "int8", ...: which operators are planted in it
  std::string strategy;  ///< of the prefill
  Case source_case;
};

/// The kind of a user's own case: every operator is planted in it that applies.
inline constexpr std::string_view kOwnCase = "own";

/// The kinds of cases, and what each is for.
struct CaseKind {
  std::string_view name;
  std::string_view what;  ///< "int8 weights, for their scales"
  std::string_view keys;  ///< of the case line, beside those that all have
};
const std::vector<CaseKind>& case_kinds();

/// Returns the cases of a strategy, one of each kind that it can have.
std::vector<FaultCase> cases_of(const Strategy& strategy);
/// Returns those of every strategy that ships.
std::vector<FaultCase> all_cases();

}  // namespace shardproof::faults
