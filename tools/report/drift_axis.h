#pragma once

#include <string>

namespace shardproof::tools {

/// The extents of a chart of drifts, whose axis has powers of ten.
inline constexpr double kDriftWidth = 1100, kDriftLeft = 50, kDriftTop = 16;

/// Returns the height at which a drift is drawn; what is beyond the axis stands at its end.
double drift_height(double drift);

/// Returns the chart of these marks as SVG, with its axis and a line below it.
std::string drift_chart(const std::string& label, const std::string& marks,
                        const std::string& below);

/// Returns the path of a cross at a place.
std::string cross(double x, double y);

}  // namespace shardproof::tools
