#pragma once

#include "tools/drawing/detail/page.h"
#include "tools/drawing/detail/scene.h"

namespace shardproof {

/// Draws the head of a picture: title, notes, the totals of what is sent, and the legend.
Card header_card(const Scene& scene);

}  // namespace shardproof
