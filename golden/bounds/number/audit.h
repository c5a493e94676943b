#pragma once

#include <utility>
#include <vector>

namespace shardproof::bounds {

/// The factors of each product of a sum, in the order of the sum.
using Products = std::vector<std::pair<double, double>>;

/// What T5 adds to the likely bound of an f32 sum whose partial sums are at most `largest` in size:
/// for each binade that they go through, the range of the prefix sums of what rounding to that
/// binade's units changes of each product. No bound where the largest is 0 or no number: 0.
double residue_audit(const Products& products, double largest);

}  // namespace shardproof::bounds
