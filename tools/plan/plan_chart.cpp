#include "tools/plan/plan_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/cost/chip/quantity.h"
#include "tools/drawing/label_places.h"
#include "tools/drawing/log_axis.h"
#include "tools/drawing/svg.h"

namespace shardproof::tools {
namespace {

constexpr double kChartWidth = 760, kPanelHeight = 430;
constexpr double kLeft = 84, kRight = 24, kTop = 40, kBottom = 52;
constexpr double kLabelSize = 8, kTextSize = 10, kTitleSize = 12;
constexpr double kNoteStep = 14;

/// Colours that are told apart by people who do not see red or green.
struct Look {
  const char *colour, *light;
};
constexpr std::array<Look, 4> kLooks{{{"#0b5394", "#9fc5e8"},
                                      {"#b45f06", "#f6c89b"},
                                      {"#38761d", "#b6d7a8"},
                                      {"#741b47", "#d5a6bd"}}};

/// The frame of a panel and its axes.
struct Frame {
  double top;
  LogAxis x, y;
};

bool has_points(const ChartPanel& panel) {
  return std::any_of(panel.series.begin(), panel.series.end(),
                     [](const ChartSeries& s) { return !s.points.empty(); });
}

Frame frame_of(const ChartPanel& panel, double top) {
  std::vector<double> latencies, costs;
  for (const ChartSeries& series : panel.series)
    for (const ChartPoint& point : series.points) {
      latencies.push_back(point.latency);
      costs.push_back(point.cost);
    }
  const auto [fast, slow] = std::minmax_element(latencies.begin(), latencies.end());
  const auto [cheap, dear] = std::minmax_element(costs.begin(), costs.end());
  return {top, LogAxis(*fast, *slow, kLeft, kChartWidth - kRight),
          LogAxis(*cheap, *dear, top + kPanelHeight - kBottom, top + kTop)};
}

/// A square, or a diamond: a form besides the colour.
void mark(Svg& svg, double x, double y, std::size_t series, const char* fill, double size,
          const std::string& title) {
  if (series % 2 == 0) {
    svg.rect(x - size, y - size, 2 * size, 2 * size, fmt::format("fill=\"{}\"", fill), title);
    return;
  }
  const double d = 1.4 * size;
  svg.open("", "", title);
  svg.path(fmt::format("M{:.2f} {:.2f}L{:.2f} {:.2f}L{:.2f} {:.2f}L{:.2f} {:.2f}Z", x, y - d, x + d,
                       y, x, y + d, x - d, y),
           fmt::format("fill=\"{}\"", fill));
  svg.close();
}

void draw_axes(Svg& svg, const ChartPanel& panel, const Frame& frame) {
  const double bottom = frame.top + kPanelHeight - kBottom, right = kChartWidth - kRight;
  svg.text(kLeft, frame.top + kTop - 14, panel.title, {.size = kTitleSize, .bold = true});
  for (const double value : frame.x.ticks()) {
    const double x = frame.x.at(value);
    svg.line(x, frame.top + kTop, x, bottom, "stroke=\"#ddd\" stroke-width=\"0.7\"");
    svg.text(x, bottom + 14, cost::rounded_quantity(value, cost::Measure::seconds, 3),
             {.size = kTextSize, .anchor = "middle"});
  }
  for (const double value : frame.y.ticks()) {
    const double y = frame.y.at(value);
    svg.line(kLeft, y, right, y, "stroke=\"#ddd\" stroke-width=\"0.7\"");
    svg.text(kLeft - 6, y + 3.5, fmt::format("{:.4g}", value),
             {.size = kTextSize, .anchor = "end"});
  }
  svg.rect(kLeft, frame.top + kTop, right - kLeft, bottom - frame.top - kTop,
           "fill=\"none\" stroke=\"#444\" stroke-width=\"0.8\"");
  svg.text((kLeft + right) / 2, bottom + 32, panel.latency,
           {.size = kTextSize, .anchor = "middle"});
  const double middle = (frame.top + kTop + bottom) / 2;
  svg.append(fmt::format("<g transform=\"rotate(-90 22 {0:.2f})\">\n", middle));
  svg.text(22, middle, "chip-seconds a token", {.size = kTextSize, .anchor = "middle"});
  svg.close();
}

void draw_series(Svg& svg, const ChartSeries& series, std::size_t number, const Frame& frame,
                 LabelPlaces& places) {
  const Look& look = kLooks.at(number % kLooks.size());
  for (const ChartPoint& point : series.points) {
    const double x = frame.x.at(point.latency), y = frame.y.at(point.cost);
    mark(svg, x, y, number, look.light, 1.8, point.title);
    places.avoid({x - 2.5, y - 2.5, 5, 5});
  }
  std::string line;
  for (const ChartPoint& point : series.frontier)
    line += fmt::format("{}{:.2f} {:.2f}", line.empty() ? "M" : "L", frame.x.at(point.latency),
                        frame.y.at(point.cost));
  svg.path(line, fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1.4\"", look.colour));
  for (const ChartPoint& point : series.frontier) {
    const double x = frame.x.at(point.latency), y = frame.y.at(point.cost);
    mark(svg, x, y, number, look.colour, 2.6, point.title);
    places.take({x - 3.5, y - 3.5, 7, 7});
  }
}

void draw_labels(Svg& svg, const ChartSeries& series, std::size_t number, const Frame& frame,
                 LabelPlaces& places) {
  const Look& look = kLooks.at(number % kLooks.size());
  for (const ChartPoint& point : series.frontier)
    if (const auto box = places.place(frame.x.at(point.latency), frame.y.at(point.cost),
                                      Svg::width(point.label, kLabelSize), kLabelSize * 1.15))
      svg.text(box->x, box->y + kLabelSize, point.label, {.size = kLabelSize, .fill = look.colour});
}

void draw_key(Svg& svg, const ChartPanel& panel, const Frame& frame) {
  double x = kChartWidth - kRight;
  for (std::size_t i = panel.series.size(); i-- > 0;) {
    const ChartSeries& series = panel.series[i];
    if (series.points.empty()) continue;
    const std::string text = series.name + " weights";
    x -= Svg::width(text, kTextSize);
    const double y = frame.top + kTop - 14;
    svg.text(x, y, text, {.size = kTextSize});
    mark(svg, x - 8, y - 3.5, i, kLooks.at(i % kLooks.size()).colour, 3, "");
    x -= 30;
  }
}

/// What lines take: no label may lie on them.
void take_lines(const ChartPanel& panel, const Frame& frame, LabelPlaces& places) {
  constexpr int kParts = 24;
  for (const ChartSeries& series : panel.series)
    for (std::size_t i = 1; i < series.frontier.size(); ++i) {
      const ChartPoint &a = series.frontier[i - 1], &b = series.frontier[i];
      const double x = frame.x.at(a.latency), y = frame.y.at(a.cost);
      const double dx = frame.x.at(b.latency) - x, dy = frame.y.at(b.cost) - y;
      for (int part = 1; part < kParts; ++part)
        places.take({x + dx * part / kParts - 0.5, y + dy * part / kParts - 0.5, 1, 1});
    }
}

}  // namespace

std::string plan_chart(const std::vector<ChartPanel>& panels, const std::string& title,
                       const std::vector<std::string>& notes) {
  Svg svg;
  double top = 30;
  svg.text(14, 22, title, {.size = kTitleSize + 1, .bold = true});
  for (const std::string& note : notes) {
    svg.text(14, top + kTextSize, note, {.size = kTextSize, .fill = "#333"});
    top += kNoteStep;
  }
  for (const ChartPanel& panel : panels) {
    if (!has_points(panel)) continue;
    const Frame frame = frame_of(panel, top);
    draw_axes(svg, panel, frame);
    draw_key(svg, panel, frame);
    LabelPlaces places(
        {kLeft, top + kTop, kChartWidth - kLeft - kRight, kPanelHeight - kTop - kBottom});
    take_lines(panel, frame, places);
    for (std::size_t i = 0; i < panel.series.size(); ++i)
      draw_series(svg, panel.series[i], i, frame, places);
    for (std::size_t i = 0; i < panel.series.size(); ++i)
      draw_labels(svg, panel.series[i], i, frame, places);
    top += kPanelHeight;
  }
  return svg.document(kChartWidth, top + 10, title);
}

std::string plan_page(const std::vector<ChartPanel>& panels, const std::string& title,
                      const std::vector<std::string>& notes) {
  const std::string svg = plan_chart(panels, title, notes);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{}</title>\n"
      "<style>body {{ margin: 1em; background: #fff }} svg {{ width: 100%; max-width: 1100px; "
      "height: auto }}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escape_xml(title), svg.substr(svg.find("<svg")));
}

}  // namespace shardproof::tools
