#pragma once

#include <optional>
#include <string_view>

namespace shardproof::bounds {

/// Verdicts on a value, from best to worst.
enum class Fit {
  equal,          ///< the bits are right
  within,         ///< inside the worst-case bound, which is narrow
  likely_within,  ///< inside the bound of probability 1-2^-41, which is narrow
  near,           ///< inside a wide bound, and close to the exact value
  loose,          ///< inside a wide bound, and not close to the exact value
  unlikely,       ///< inside the worst-case bound only, and no order of additions explains it
  different,      ///< outside the result of every possible evaluation
  not_judged
};
std::string_view to_string(Fit fit);
/// Returns nullopt if `word` is not a verdict.
std::optional<Fit> parse_fit(std::string_view word);

/// One hundredth of a value's root mean square: bounds and distances below it are informative.
inline constexpr double kNarrow = 0.01;

/// How a value compares with its bounds. Each distance is the largest over the elements.
struct Extent {
  bool outside = false;         ///< some element is outside the worst-case bound
  bool outside_likely = false;  ///< some element is outside the likely bound, unexplained
  double worst = 0.0;           ///< reach of the worst-case bound
  double likely = 0.0;          ///< reach of the likely bound
  double found = 0.0;           ///< from the exact number to the numbers that round to the element
  double scale = 0.0;           ///< the value's root mean square
};
/// Returns the verdict by the rule of docs/bounds.md section 7.
Fit fit_of(const Extent& extent);

/// Returns whether `distance` is at most scale / 100; false if either is infinite or NaN.
bool narrow(double distance, double scale);
/// Returns distance / scale: 0 for a distance of 0, infinite for a scale of 0.
double relative(double distance, double scale);

}  // namespace shardproof::bounds
