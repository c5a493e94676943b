#pragma once

#include <string_view>

#include "tools/drawing/detail/page.h"
#include "tools/drawing/detail/scene.h"

namespace shardproof {

/// Draws one value in one row: its statement, blocks, and what the example chip holds. `before`
/// precedes its name and layout, `call` follows them.
Card value_card(const Scene& scene, const ValueDecl& result, std::string_view before,
                std::string_view call = "");

/// Draws the results of an op without communication, one row each.
Card local_card(const Scene& scene, const Op& op);

}  // namespace shardproof
