#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

/// The legal word nearest to `word` (least edits), for error messages; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& legal);

}  // namespace shardproof
