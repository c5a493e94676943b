#pragma once

#include <cstddef>

#include "tools/drawing/detail/page.h"
#include "tools/drawing/detail/scene.h"

namespace shardproof {

/// A collective: its statement and what is sent, the blocks before and after, who talks, what the
/// example chip had and has, and of a loop which chunk is where in each round. `step` is its place
/// in the program.
Card collective_card(const Scene& scene, const Op& op, std::size_t step);

}  // namespace shardproof
