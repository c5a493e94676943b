#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace shardproof::tools {

/// The version of every verb's JSON (docs/json.md): raised when a member goes or changes its
/// meaning, not when one is added.
inline constexpr int kJsonSchema = 2;

/// A verb's JSON object as it is printed: with its "schema", indented by one, and valid UTF-8
/// whatever bytes a file's name has.
inline std::string json_text(nlohmann::json object) {
  object["schema"] = kJsonSchema;
  return object.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace shardproof::tools
