#include "tools/drawing/detail/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/drawing/svg.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

struct Format {
  double w, h;
  int columns;
};
constexpr Format kFormats[] = {
    {595, 842, 1}, {1191, 842, 2}, {1191, 1684, 2}, {2384, 1684, 4}, {2384, 3370, 4}};
constexpr double kMargin = 24;

int columns_used(const std::vector<Card>& cards, double height) {
  int columns = 1;
  double y = 0;
  for (const Card& card : cards) {
    if (y > 0 && y + card.height > height) ++columns, y = 0;
    y += card.height;
  }
  return columns;
}

}  // namespace

std::string page(const std::vector<Card>& cards, const std::string& title) {
  double tallest = 0;
  for (const Card& card : cards) tallest = std::max(tallest, card.height);
  for (const Format& format : kFormats) {
    const double most = format.h - 2 * kMargin;
    if (tallest > most || columns_used(cards, most) > format.columns) continue;
    double height = tallest;
    while (columns_used(cards, height) > format.columns) height += 4;
    height = std::min(height, most);
    const double gap = (format.w - kColumn * format.columns) / (format.columns + 1);
    Svg svg;
    double x = gap, y = 0;
    for (const Card& card : cards) {
      if (y > 0 && y + card.height > height) x += kColumn + gap, y = 0;
      svg.append_at(x, kMargin + y, card.elements);
      y += card.height;
    }
    return svg.document(format.w, format.h, title);
  }
  throw Error("picture_c2", fmt::format("{} is too long for one A0 page: {} inputs and steps",
                                        title, cards.size() - 1));
}

}  // namespace shardproof
