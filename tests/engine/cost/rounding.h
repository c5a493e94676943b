#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardproof::cost {

/// The share by which two ways to compute one value can differ that are of at most `operations`
/// rounded additions of values that are not negative, products, quotients and roots each, one
/// after another: of a sum those that its longest chain has, not all that are added.
///
/// Each operation is off by a share of u = 2^-53 at most, so that either way is from (1 − u)^n to
/// (1 − u)^−n times the value, and the smaller is at least (1 − u)^2n ≥ 1 − 2nu times the larger.
/// 2nu/(1 − nu) is above 2nu by more than what rounds where this bound is compared itself, and
/// twice the γ of Higham (Accuracy and Stability of Numerical Algorithms, 3.1), by which one way
/// can differ from the value.
///
/// It says nothing of differences of computed values, which cancel: they differ by what their terms
/// do. A function of the C library (log, expm1, pow) is off by less than a unit in the last place,
/// so it counts as two operations. Nothing may underflow.
inline double rounding_share(int operations) {
  const double n_u = operations * (std::numeric_limits<double>::epsilon() / 2);
  return 2.0 * n_u / (1.0 - n_u);
}

/// Whether a ≤ b holds of the values that a and b, none of them negative, were computed for in at
/// most so many operations each.
inline ::testing::AssertionResult no_more_but_for_rounding(double a, double b, int operations) {
  if (a - b <= rounding_share(operations) * std::max(a, b)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << a << " is more than " << b << " by " << a - b << ", and " << operations
         << " operations round by a share of " << rounding_share(operations);
}

/// Whether a and b, none of them negative, can be one value, computed in at most so many operations
/// each.
inline ::testing::AssertionResult equal_but_for_rounding(double a, double b, int operations) {
  const ::testing::AssertionResult no_more = no_more_but_for_rounding(a, b, operations);
  return no_more ? no_more_but_for_rounding(b, a, operations) : no_more;
}

/// No count, and no time, of a pass takes as many rounded operations, one after another: a layer's
/// program has fewer than 256 ops, each adds one term to a sum of it, and a term is a product of
/// fewer than 32 factors; its floors have fewer terms.
inline constexpr int kOperationsOfAPass = 512;

}  // namespace shardproof::cost
