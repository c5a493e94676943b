#pragma once

#include <string>
#include <string_view>

namespace shardproof::tools {

/// Returns the line by which a GitHub workflow shows an error: "::error title=...::...".
std::string annotation(std::string_view title, std::string_view message);

}  // namespace shardproof::tools
