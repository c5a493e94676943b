#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

/// Returns the legal word nearest to `word` by edit distance, for error messages; empty if none is
/// near.
std::string nearest(std::string_view word, const std::vector<std::string>& legal);

}  // namespace shardproof
