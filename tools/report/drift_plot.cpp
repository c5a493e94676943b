#include "tools/report/drift_plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/report/drift_axis.h"
#include "tools/report/marks.h"
#include "tools/text/html.h"

namespace shardproof::tools {
namespace {

using bounds::Fit;

/// A circle for a right value, a triangle for a weak verdict, a cross for a wrong value.
std::string shape(Fit fit, double x, double y) {
  if (fit == Fit::different || fit == Fit::unlikely) return cross(x, y);
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
    const double x =
        kDriftLeft + 8 + place++ / std::max(count, 1.0) * (kDriftWidth - kDriftLeft - 16);
    const bool wrong = row.fit == Fit::different;
    if (!wrong && row.drift < 0) continue;
    any = any || !wrong;
    marks += fmt::format(
        "<path class=\"mark {}\" d=\"{}\"><title>{}: {}</title></path>\n", mark_of(row.fit).style,
        shape(row.fit, x, wrong ? kDriftTop : drift_height(row.drift)), escaped(row.title),
        wrong ? "different" : fmt::format("drift {:.1e}", row.drift));
  }
  if (!any) return "";
  return drift_chart("drift of each value", marks, "values in the order of the run");
}

}  // namespace shardproof::tools
