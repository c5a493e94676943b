#pragma once

#include <string_view>

namespace shardproof {

/// The text of engine/strategies/strategies.layouts, compiled in.
extern const std::string_view kShippedLayouts;

}  // namespace shardproof
