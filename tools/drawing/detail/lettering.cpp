#include "tools/drawing/detail/lettering.h"

#include <fmt/format.h>

#include <cmath>

namespace shardproof {

std::vector<std::string> wrapped(std::string_view text, double width, double size) {
  const auto letters = static_cast<std::size_t>(width / (size * Svg::kAdvance));
  std::vector<std::string> lines;
  while (text.size() > letters) {
    std::size_t at = text.rfind(' ', letters);
    if (at == std::string_view::npos || at == 0) at = letters;
    lines.emplace_back(text.substr(0, at));
    text.remove_prefix(at + (text[at] == ' ' ? 1 : 0));
  }
  lines.emplace_back(text);
  return lines;
}

double write_lines(Svg& svg, double x, double y, const std::vector<std::string>& lines, double size,
                   double step, bool hang) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    svg.text(x + (hang && i > 0 ? 12 : 0), y + size, lines[i], {size});
    y += step;
  }
  return y;
}

std::string number_text(double value) {
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace shardproof
