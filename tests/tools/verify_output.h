#pragma once

// What `verify` prints, counted.
#include <iterator>
#include <regex>
#include <string>

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// The rows of the table: lines that begin with a right-aligned number.
inline std::size_t rows(const std::string& text) {
  static const std::regex row("(^|\n) *[0-9]+ [0-9]+x[0-9]+x[0-9]+ ");
  return static_cast<std::size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), row), std::sregex_iterator()));
}
