#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace shardproof {

/// Returns `text` without leading blanks and tabs and trailing blanks, tabs and carriage returns.
inline std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

/// Returns the parts between separators, each trimmed.
inline std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(trim(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text = text.substr(at + separator.size());
  }
}

/// Returns the parts between separators that stand in no parentheses, each trimmed.
inline std::vector<std::string_view> split_arguments(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (depth == 0 && text[i] == separator) {
      parts.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  parts.push_back(trim(text.substr(begin)));
  return parts;
}

}  // namespace shardproof
