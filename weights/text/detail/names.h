#pragma once

#include <string_view>

namespace shardproof {

inline bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Returns whether a word is a name of a model text: letters, digits and _, the first no digit.
inline bool is_model_name(std::string_view word) {
  if (word.empty() || (word[0] >= '0' && word[0] <= '9')) return false;
  for (const char c : word)
    if (!is_name_char(c)) return false;
  return true;
}

/// Returns whether a word is a row of dim letters, each at most once.
inline bool are_letters(std::string_view word) {
  for (std::size_t i = 0; i < word.size(); ++i)
    if (!((word[i] >= 'A' && word[i] <= 'Z') || (word[i] >= 'a' && word[i] <= 'z')) ||
        word.find(word[i], i + 1) != std::string_view::npos)
      return false;
  return !word.empty();
}

}  // namespace shardproof
