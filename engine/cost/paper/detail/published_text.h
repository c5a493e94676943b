#pragma once

#include <string_view>

namespace shardproof::cost {

/// The text of engine/cost/paper/published.txt.
extern const std::string_view kPublishedText;

}  // namespace shardproof::cost
