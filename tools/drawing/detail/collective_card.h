#pragma once

#include <cstddef>

#include "tools/drawing/detail/page.h"
#include "tools/drawing/detail/scene.h"

namespace shardproof {

/// Draws a collective: its statement and what is sent, the blocks before and after, the
/// communicating chips, the example chip's data before and after, and for a loop the chunks of each
/// round. `step` is the index of the op in the program.
Card collective_card(const Scene& scene, const Op& op, std::size_t step);

}  // namespace shardproof
