#pragma once

#include <set>
#include <string>

#include "weights/text/sizes.h"

namespace shardproof {

/// Returns the names of the values of a text that are integers made of positions alone, `pos` and
/// `slot` among them: sums, differences, products and ranges of such, of whole literals, extents
/// and, if `numbers`, the text's numbers that are whole in these sizes.
std::set<std::string> integers_of(const ModelText& text, const TextSizes& sizes, bool numbers);

/// Returns whether a line has `within` of a value that is not made of positions, whole literals and
/// extents alone.
bool ranges_over_numbers(const ModelText& text, const TextSizes& sizes);

}  // namespace shardproof
