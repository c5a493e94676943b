#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace shardproof::tools {

/// JSON as the verbs print it: indented by one, and valid UTF-8 whatever bytes a file's name has.
inline std::string json_text(const nlohmann::json& json) {
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace shardproof::tools
