#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof {

/// Parses JSON of others. Calls `refuse`, which must throw, with the reason: "is not JSON: ...",
/// "names \"a\" twice", "is nested deeper than 32".
nlohmann::json parse_strict_json(std::string_view text,
                                 const std::function<void(const std::string& why)>& refuse);

}  // namespace shardproof
