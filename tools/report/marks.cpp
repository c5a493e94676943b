#include "tools/report/marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace shardproof::tools {
namespace {

using bounds::Fit;

constexpr Mark kMarks[] = {{Fit::equal, "=", "right"},         {Fit::within, "✓", "right"},
                           {Fit::likely_within, "✓", "right"}, {Fit::near, "≈", "right"},
                           {Fit::loose, "~", "weak"},          {Fit::unlikely, "?", "wrong"},
                           {Fit::different, "✗", "wrong"},     {Fit::not_judged, "·", "none"}};

}  // namespace

Mark mark_of(Fit fit) {
  return *std::find_if(std::begin(kMarks), std::end(kMarks),
                       [&](const Mark& mark) { return mark.fit == fit; });
}

std::string mark_html(Fit fit) {
  const Mark mark = mark_of(fit);
  return fmt::format("<span class=\"{}\" title=\"{}\">{}</span>", mark.style,
                     bounds::to_string(fit), mark.character);
}

std::string marks_legend() {
  std::string out = "<p class=\"none\">";
  for (const Mark& mark : kMarks)
    if (mark.fit != Fit::likely_within)
      out += fmt::format("{} {}&#160;&#160; ", mark_html(mark.fit), bounds::to_string(mark.fit));
  return out + "</p>\n";
}

}  // namespace shardproof::tools
