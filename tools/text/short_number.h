#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace shardproof::tools {

/// Formats with at most `digits` digits and a letter for a power of 1000: "2.199T", "512", "0".
inline std::string short_number(double value, int digits = 4) {
  constexpr const char* kLetters[] = {"", "k", "M", "G", "T", "P", "E"};
  constexpr int kLast = 6;
  int power = 0;
  while (std::abs(value) >= 1000.0 && power < kLast) {
    value /= 1000.0;
    ++power;
  }
  return fmt::format("{:.{}g}{}", value, digits, kLetters[power]);
}

}  // namespace shardproof::tools
