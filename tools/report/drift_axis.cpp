#include "tools/report/drift_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardproof::tools {
namespace {

constexpr double kHeight = 220, kBottom = 18;
constexpr int kLeast = -9, kMost = 1;  // powers of ten at the ends of the axis

}  // namespace

double drift_height(double drift) {
  const double power =
      drift > 0 ? std::clamp(std::log10(drift), double{kLeast}, double{kMost}) : kLeast;
  return kDriftTop + (kMost - power) / (kMost - kLeast) * (kHeight - kDriftTop - kBottom);
}

std::string drift_chart(const std::string& label, const std::string& marks,
                        const std::string& below) {
  std::string axis;
  for (int power = kLeast; power <= kMost; power += 2) {
    const double y = drift_height(std::pow(10.0, power));
    axis += fmt::format(
        "<path class=\"axis\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"4\" y=\"{3:.1f}\">1e{4}</text>\n",
        kDriftLeft, y, kDriftWidth, y + 4, power);
  }
  return fmt::format(
      "<div class=\"wide\"><svg id=\"drift\" role=\"img\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" aria-label=\"{2}\">\n{3}{4}<text x=\"{5}\" y=\"{6}\">{7}</text>\n"
      "</svg></div>\n",
      kDriftWidth, kHeight, label, axis, marks, kDriftLeft, kHeight - 2, below);
}

std::string cross(double x, double y) {
  return fmt::format("M{:.1f} {:.1f}l6 6m0-6l-6 6", x - 3, y - 3);
}

}  // namespace shardproof::tools
