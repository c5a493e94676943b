#pragma once

#include <optional>
#include <vector>

#include "golden/trace/pair/matcher.h"
#include "golden/trace/pair/pair.h"

namespace shardproof::dump {

/// Which rows of two verdicts are the same value.
struct Partners {
  std::optional<std::size_t> a, b;
  bool turned = false;                 ///< b is matched with the other's, not a
  std::vector<std::size_t> more = {};  ///< further rows of the other in which elements are found
  std::int64_t order = 0;              ///< place in the run
};

/// Pairs values by id: of several arrays of one value those of one name, else the first ones.
std::vector<Partners> partners_by_id(const JudgedTrace& a, const JudgedTrace& b);

/// Pairs values by rows and positions: each array of A, and those of B of which A's do not find all
/// elements, caches of earlier passes among them.
std::vector<Partners> partners_by_places(const JudgedTrace& a, const JudgedTrace& b,
                                         const Matcher& matcher);

/// Returns the arrays of a trace as they are matched by rows and positions.
std::vector<MatchedArray> matched_arrays(const JudgedTrace& of);

}  // namespace shardproof::dump
