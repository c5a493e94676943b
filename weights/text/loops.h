#pragma once

#include <cstddef>
#include <vector>

#include "weights/text/model_text.h"

namespace shardproof {

/// Lines of a section that run together: one line, or a loop, whose lines need one another one
/// position earlier and run one position after another.
struct LineGroup {
  std::vector<std::size_t> lines;  ///< indices in the section, in the order in which they run
  bool loop = false;
};

/// Returns the lines of a section in an order in which each comes after what it reads; lines that
/// are free stay in the text's order. Lines of one name under complementary guards count as one.
std::vector<LineGroup> order_of_lines(const ModelText& text, TextSection section);

}  // namespace shardproof
