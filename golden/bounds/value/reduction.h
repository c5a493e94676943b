#pragma once

#include <vector>

#include "golden/bounds/number/lanes.h"

namespace shardproof::bounds {

/// Partial sums of chips, row-major over the axes that they lie along: for a contraction cut over
/// `extents` = {Y, Z}, number y·Z + z belongs to chip (y, z). Of several elements side by side.
struct Partials {
  std::vector<int> extents;
  std::vector<Lanes> numbers;
};

/// Returns, of each element, the sum of partial sums that are sent in the format `wire`, as the
/// hull over every reduction that libraries have by name and the declaration allows: a ring
/// starting at any chip, in both directions; two sums that travel in opposite directions and meet;
/// a tree of neighbours, or of chips half the ring apart; a group whose chips each add all they
/// receive, in f32; over all chips at once, or over one axis after another. Everything sent is
/// rounded to `wire`; a chip's own partial sum may be, and so may the result, as in an all_gather.
/// docs/bounds.md section 3.
Lanes reduced(const Partials& partials, const DeclaredArithmetic& declared, NumberFormat wire);

}  // namespace shardproof::bounds
