#pragma once

#include <string>
#include <vector>

namespace shardproof::tools {

/// A choice in a chart of cost against latency.
struct ChartPoint {
  double latency = 0.0;  ///< seconds, above 0
  double cost = 0.0;     ///< chip-seconds a token, above 0
  std::string label;     ///< "64 chips, 32 rows"
  std::string title;     ///< what a viewer shows when it is pointed at
};

/// The choices with one weight type.
struct ChartSeries {
  std::string name;                  ///< "int8"
  std::vector<ChartPoint> points;    ///< all of them
  std::vector<ChartPoint> frontier;  ///< those that a line joins, by growing latency
};

/// A phase: one pair of axes.
struct ChartPanel {
  std::string title;    ///< "Decode"
  std::string latency;  ///< what the axis is: "latency of a step"
  std::vector<ChartSeries> series;
};

/// Panels below one another with logarithmic axes, as an SVG document. Every series has a colour,
/// a mark of its own form, and a line through its frontier, whose points have labels as far as
/// there is room. Series without points are left out.
std::string plan_chart(const std::vector<ChartPanel>& panels, const std::string& title,
                       const std::vector<std::string>& notes);

/// The same as a page that needs nothing besides.
std::string plan_page(const std::vector<ChartPanel>& panels, const std::string& title,
                      const std::vector<std::string>& notes);

}  // namespace shardproof::tools
