#pragma once

#include <string>
#include <string_view>

#include "golden/bounds/number/fit.h"

namespace shardproof::tools {

/// How a verdict looks in tables: a character, and a class of the page's style.
struct Mark {
  bounds::Fit fit;
  std::string_view character, style;
};

Mark mark_of(bounds::Fit fit);

/// Returns the mark as HTML, with the verdict as its title.
std::string mark_html(bounds::Fit fit);

/// Returns the line that says what the marks mean.
std::string marks_legend();

}  // namespace shardproof::tools
