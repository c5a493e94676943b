#pragma once

#include <utility>
#include <vector>

namespace shardproof::bounds {

/// The factors of each product of a sum, in the order of the sum.
using Products = std::vector<std::pair<double, double>>;

/// Returns the term of T5 that widens the likely bound of an f32 sum whose partial sums are at most
/// `largest` in magnitude: per binade, the range of the prefix sums of the products' residues when
/// rounded to that binade's unit, summed over ten binades. 0 unless `largest` is positive and
/// finite.
double residue_audit(const Products& products, double largest);

}  // namespace shardproof::bounds
