#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tools/text/json_text.h"

namespace shardproof::tools {

/// Named values, printed one per line or as one JSON object.
class FactSheet {
 public:
  explicit FactSheet(std::string title) : title_(std::move(title)) {}

  /// Adds a value: `member` is its JSON name, `label` and `shown` form the line of text.
  void add(const std::string& member, const std::string& label, nlohmann::json value,
           const std::string& shown) {
    json_[member] = std::move(value);
    text_ += fmt::format("{:<38}{}\n", label, shown);
  }

  void print(bool json) const {
    if (json)
      fmt::print("{}\n", json_text(json_));
    else
      fmt::print("{}\n{}", title_, text_);
  }

 private:
  std::string title_, text_;
  nlohmann::json json_ = nlohmann::json::object();
};

}  // namespace shardproof::tools
