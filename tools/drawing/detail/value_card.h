#pragma once

#include <string_view>

#include "tools/drawing/detail/page.h"
#include "tools/drawing/detail/scene.h"

namespace shardproof {

/// One value in one row: its statement, blocks, and what the example chip holds. `before` and
/// `call` stand around its name and layout.
Card value_card(const Scene& scene, const ValueDecl& result, std::string_view before,
                std::string_view call = "");

/// The results of an op that moves nothing, a row each.
Card local_card(const Scene& scene, const Op& op);

}  // namespace shardproof
