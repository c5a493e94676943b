#pragma once

#include <optional>
#include <string_view>

namespace shardproof::bounds {

/// What a judge says of a value, from best to worst.
enum class Fit {
  equal,          ///< the bits are right
  within,         ///< inside of the worst-case bound, which is narrow
  likely_within,  ///< inside of the bound of probability 1-2^-41, which is narrow
  near,           ///< inside of a wide bound, and found near exact
  loose,          ///< inside of a wide bound, and not found near
  unlikely,       ///< inside of the worst case alone, and no way of adding explains it
  different,      ///< outside of what any evaluation comes to
  not_judged
};
std::string_view to_string(Fit fit);
/// None if there is no such word.
std::optional<Fit> parse_fit(std::string_view word);

/// One hundredth of a value's root mean square: what is narrower, or nearer, shows something.
inline constexpr double kNarrow = 0.01;

/// What is known of a value that was held against its bounds. Distances are of the largest element.
struct Extent {
  bool outside = false;         ///< some element lies outside of the worst-case bound
  bool outside_likely = false;  ///< or of the likely one, where nothing explains it
  double worst = 0.0;           ///< how far the worst-case bound reaches
  double likely = 0.0;          ///< and the likely one
  double found = 0.0;           ///< from exact to the numbers that are rounded to the element
  double scale = 0.0;           ///< the value's root mean square
};
/// By the rule of docs/bounds.md section 7.
Fit fit_of(const Extent& extent);

/// Whether a distance is at most one hundredth of a scale. Not where one of these is infinite or no
/// number.
bool narrow(double distance, double scale);
/// A distance over a scale; 0 of no distance, infinite over no scale.
double relative(double distance, double scale);

}  // namespace shardproof::bounds
