#include "tools/report/pair_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/text/html.h"

namespace shardproof::tools {
namespace {

constexpr double kPlotWidth = 1100, kPlotHeight = 240, kPlotLeft = 50, kPlotTop = 20,
                 kPlotBottom = 18;
// Powers of ten at the ends of the axis; what is below or above is drawn at the end.
constexpr int kLowest = -9, kHighest = 1;

double y_of(double drift) {
  const double power =
      drift > 0 ? std::clamp(std::log10(drift), double{kLowest}, double{kHighest}) : kLowest;
  return kPlotTop +
         (kHighest - power) / (kHighest - kLowest) * (kPlotHeight - kPlotTop - kPlotBottom);
}

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
        x, y_of(runs->least), y_of(runs->most), x - 2, word, escaped(one.id), runs->least,
        runs->most);
  if (drift < 0) return out;
  const double y = y_of(drift);
  return out + fmt::format(
                   "<path class=\"mark {}\" d=\"{}\"><title>{}, {}: drift {:.1e}</title>"
                   "</path>\n",
                   style,
                   of_b ? fmt::format("M{:.1f} {:.1f}l6 6m0-6l-6 6", x - 3, y - 3)
                        : fmt::format("M{:.1f} {:.1f}a3 3 0 1 0 6 0a3 3 0 1 0-6 0", x - 3, y),
                   word, escaped(one.id), drift);
}

}  // namespace

std::string pair_plot(const dump::Pair& pair) {
  const std::vector<LayerDrift> layers = layer_drifts(pair);
  if (layers.empty()) return "";
  std::string axis;
  for (int power = kLowest; power <= kHighest; power += 2) {
    const double y = y_of(std::pow(10.0, power));
    axis += fmt::format(
        "<path class=\"axis\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"4\" y=\"{3:.1f}\">1e{4}</text>\n",
        kPlotLeft, y, kPlotWidth, y + 4, power);
  }
  std::string drawn;
  double place = 0.5;
  for (const LayerDrift& one : layers) {
    const double x =
        kPlotLeft + place++ / static_cast<double>(layers.size()) * (kPlotWidth - kPlotLeft - 16);
    drawn += marks(one, false, x - 4) + marks(one, true, x + 4);
  }
  return fmt::format(
      "<div class=\"wide\"><svg id=\"drift\" role=\"img\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" aria-label=\"drift of both by layer\">\n{2}{3}<text x=\"{4}\" "
      "y=\"{5}\">outputs of layers in the order of the run: circle A, cross B, bars runs in random "
      "orders of sums</text>\n</svg></div>\n",
      kPlotWidth, kPlotHeight, axis, drawn, kPlotLeft, kPlotHeight - 2);
}

}  // namespace shardproof::tools
