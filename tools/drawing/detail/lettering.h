#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/drawing/svg.h"

namespace shardproof {

/// Font sizes and line spacing, in points.
inline constexpr double kStatementSize = 7, kNoteSize = 6;
inline constexpr double kNoteLine = 7.4, kStatementLine = 8.6;

/// Breaks text at spaces into lines of at most `width` points.
std::vector<std::string> wrapped(std::string_view text, double width, double size);

/// Writes lines downwards from `y`, the top of the first; returns the bottom. `hang` indents all
/// but the first.
double write_lines(Svg& svg, double x, double y, const std::vector<std::string>& lines, double size,
                   double step, bool hang = false);

/// Formats a number: "12", "0.25".
std::string number_text(double value);

}  // namespace shardproof
