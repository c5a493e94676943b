#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace shardproof::dump {

/// Returns the integer that a number equals, if it has at most 53 bits; otherwise the number.
inline nlohmann::json as_integer(double number) {
  constexpr double kExact = 0x1p53;
  if (number >= -kExact && number <= kExact && number == std::trunc(number))
    return static_cast<std::int64_t>(number);
  return number;
}

/// Returns a text unchanged, anything else as JSON text: 1.0 as 1.
inline std::string json_text(const nlohmann::json& value) {
  using nlohmann::json;
  if (value.is_string()) return value.get<std::string>();
  const json shown = value.is_number_float() ? as_integer(value.get<double>()) : value;
  return shown.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace shardproof::dump
