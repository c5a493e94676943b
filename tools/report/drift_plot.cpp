#include "tools/report/drift_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report/marks.h"
#include "tools/text/html.h"

namespace shardproof::tools {
namespace {

using bounds::Fit;

constexpr double kWidthOfPlot = 1100, kHeight = 220, kLeft = 50, kTop = 16, kBottom = 18;
// Powers of ten at the ends of the axis; what is below or above is drawn at the end.
constexpr int kLeast = -9, kMost = 1;

double height_of(double drift) {
  const double power =
      drift > 0 ? std::clamp(std::log10(drift), double{kLeast}, double{kMost}) : kLeast;
  return kTop + (kMost - power) / (kMost - kLeast) * (kHeight - kTop - kBottom);
}

/// A circle for a right value, a triangle for a weak verdict, a cross for a wrong value.
std::string shape(Fit fit, double x, double y) {
  if (fit == Fit::different || fit == Fit::unlikely)
    return fmt::format("M{:.1f} {:.1f}l6 6m0-6l-6 6", x - 3, y - 3);
  if (fit == Fit::loose) return fmt::format("M{:.1f} {:.1f}l3 5h-6z", x, y - 3);
  return fmt::format("M{:.1f} {:.1f}a2 2 0 1 0 4 0a2 2 0 1 0-4 0", x - 2, y);
}

}  // namespace

std::string drift_plot(const Comparison& of) {
  std::string marks;
  const auto count = static_cast<double>(of.verdict.rows.size());
  double place = 0;
  bool any = false;
  for (const dump::Row& row : of.verdict.rows) {
    const double x = kLeft + 8 + place++ / std::max(count, 1.0) * (kWidthOfPlot - kLeft - 16);
    const bool wrong = row.fit == Fit::different;
    if (!wrong && row.drift < 0) continue;
    any = any || !wrong;
    marks += fmt::format("<path class=\"mark {}\" d=\"{}\"><title>{}: {}</title></path>\n",
                         mark_of(row.fit).style,
                         shape(row.fit, x, wrong ? kTop : height_of(row.drift)), escaped(row.title),
                         wrong ? "different" : fmt::format("drift {:.1e}", row.drift));
  }
  if (!any) return "";
  std::string axis;
  for (int power = kLeast; power <= kMost; power += 2) {
    const double y = height_of(std::pow(10.0, power));
    axis += fmt::format(
        "<path class=\"axis\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"4\" y=\"{3:.1f}\">1e{4}</text>\n",
        kLeft, y, kWidthOfPlot, y + 4, power);
  }
  return fmt::format(
      "<div class=\"wide\"><svg id=\"drift\" role=\"img\" viewBox=\"0 0 {0} {1}\" "
      "width=\"{0}\" "
      "height=\"{1}\" aria-label=\"drift of each value\">\n{2}{3}<text x=\"{4}\" y=\"{5}\">values "
      "in the order of the run</text>\n</svg></div>\n",
      kWidthOfPlot, kHeight, axis, marks, kLeft, kHeight - 2);
}

}  // namespace shardproof::tools
