#include "tools/report/pair_plot.h"

#include <fmt/format.h>

#include "tools/report/drift_axis.h"
#include "tools/text/html.h"

namespace shardproof::tools {
namespace {

/// A circle for A, a cross for B, each with the bar of its runs.
std::string marks(const LayerDrift& one, bool of_b, double x) {
  const double drift = of_b ? one.b : one.a;
  const dump::Wander::OfLayer* const runs = of_b ? one.runs_b : one.runs_a;
  const std::string_view word = of_b ? "B" : "A", style = of_b ? "weak" : "right";
  std::string out;
  if (runs != nullptr)
    out += fmt::format(
        "<path class=\"mark none\" d=\"M{0:.1f} {1:.1f}V{2:.1f}m-2 0h4M{3:.1f} {1:.1f}h4\">"
        "<title>{4}, {5}: runs in random orders {6:.1e} to {7:.1e}</title></path>\n",
        x, drift_height(runs->least), drift_height(runs->most), x - 2, word, escaped(one.id),
        runs->least, runs->most);
  if (drift < 0) return out;
  const double y = drift_height(drift);
  return out + fmt::format(
                   "<path class=\"mark {}\" d=\"{}\"><title>{}, {}: drift {:.1e}</title>"
                   "</path>\n",
                   style,
                   of_b ? cross(x, y)
                        : fmt::format("M{:.1f} {:.1f}a3 3 0 1 0 6 0a3 3 0 1 0-6 0", x - 3, y),
                   word, escaped(one.id), drift);
}

}  // namespace

std::string pair_plot(const dump::Pair& pair) {
  const std::vector<LayerDrift> layers = layer_drifts(pair);
  if (layers.empty()) return "";
  std::string drawn;
  double place = 0.5;
  for (const LayerDrift& one : layers) {
    const double x =
        kDriftLeft + place++ / static_cast<double>(layers.size()) * (kDriftWidth - kDriftLeft - 16);
    drawn += marks(one, false, x - 4) + marks(one, true, x + 4);
  }
  return drift_chart("drift of both by layer", drawn,
                     "outputs of layers in the order of the run: circle A, cross B, bars runs in "
                     "random orders of sums");
}

}  // namespace shardproof::tools
