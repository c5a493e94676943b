#pragma once

#include <string_view>

namespace shardproof::cost {

/// The text of engine/cost/chip/chips.txt, compiled in.
extern const std::string_view kShippedChips;

}  // namespace shardproof::cost
