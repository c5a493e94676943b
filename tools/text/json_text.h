#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace shardproof::tools {

/// Version of every verb's JSON (docs/json.md): raised when a member is removed or changes its
/// meaning, not when one is added.
inline constexpr int kJsonSchema = 2;

/// Serializes a verb's JSON object: with its "schema", indented by one, and valid UTF-8 even if a
/// file's name is not.
inline std::string json_text(nlohmann::json object) {
  object["schema"] = kJsonSchema;
  return object.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Returns a number that may be infinite, which JSON has no number for: then its name.
inline nlohmann::json json_number(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}

}  // namespace shardproof::tools
