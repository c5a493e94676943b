#pragma once

#include <vector>

#include "golden/bounds/number/number.h"

namespace shardproof::bounds {

/// Partial sums of chips, row-major over the axes that they lie along: of a contraction cut over
/// `extents` = {Y, Z} number y·Z + z is that of chip (y, z).
struct Partials {
  std::vector<int> extents;
  std::vector<Number> numbers;
};

/// The sum of partial sums that are sent in a format, by every reduction that libraries have by
/// name and the declaration leaves open: a ring from each chip on, both ways round; two sums that
/// go round both ways and meet; a tree of neighbours, or of chips half the ring apart; a group
/// whose chips each add all they receive, in f32; over all chips at once, or over one axis after
/// another. What is sent is rounded to the format; what a chip adds of its own may be, and so may
/// the result, as where it is sent round. docs/bounds.md section 3.
Number reduced(const Partials& partials, const Declared& declared, Format wire);

}  // namespace shardproof::bounds
