#pragma once

#include <string>
#include <vector>

namespace shardproof {

/// Width of a page's columns, in points.
inline constexpr double kColumn = 551;

/// An unbreakable piece of a column: SVG elements in a box of kColumn by `height`.
struct Card {
  double height;
  std::string elements;
};

/// Lays out the cards in columns of about equal length, as an SVG file of the smallest A format
/// that holds them in full size (A4 one column, A3 and A2 two, A1 and A0 four). Throws
/// Error("picture_c2", ...) if even A0 does not hold them.
std::string page(const std::vector<Card>& cards, const std::string& title);

}  // namespace shardproof
