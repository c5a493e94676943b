#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shardproof {

// Tables in text files beside the tests. A row has columns between " | " and may go on in lines
// that begin with a blank; "-" is an empty column; "@NAME = TEXT" stands for TEXT wherever a later
// line says @NAME; "#" begins a line of comment.

struct TextRow {
  std::vector<std::string> columns;
  std::string place;  ///< the file and the line in which the row begins

  /// Returns the column's text, "" where it is empty or the row ends before it.
  std::string operator[](std::size_t i) const {
    return i < columns.size() && columns[i] != "-" ? columns[i] : "";
  }
};

/// Returns what stands between `separator`, without the blanks at the ends of each.
inline std::vector<std::string> parts_of(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    const std::size_t first = std::min(text.find_first_not_of(' ', at), end);
    std::string part = text.substr(first, end - first);
    part.erase(part.find_last_not_of(' ') + 1);
    parts.push_back(part);
    at = end + separator.size();
  }
  return parts;
}

/// Returns the text with `from` replaced by `to` everywhere.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Throws std::invalid_argument for a word that no table has.
[[noreturn]] inline void refuse_word(const std::string& word, const std::string& text) {
  throw std::invalid_argument("'" + word + "' in '" + text + "'");
}

/// Returns the values of words "NAME=VALUE", of which each name is one of `names`.
inline std::map<std::string, std::string> values_of(const std::string& words,
                                                    const std::set<std::string>& names) {
  std::map<std::string, std::string> values;
  for (const std::string& word : parts_of(words, " ")) {
    if (word.empty()) continue;
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    if (equals == word.size() || !names.contains(name)) refuse_word(word, words);
    if (!values.emplace(name, word.substr(equals + 1)).second) refuse_word(word, words);
  }
  return values;
}

/// Returns the lines of a text that a row has in one column, with " / " at their ends.
inline std::string lines_of(const std::string& column) { return replaced(column, " / ", "\n"); }

/// Returns the rows of a file of `folder`.
inline std::vector<TextRow> text_rows(const std::string& folder, const std::string& file) {
  std::ifstream in(folder + "/" + file);
  if (!in) throw std::runtime_error("no table " + folder + "/" + file);
  std::vector<std::pair<std::string, int>> joined;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line[0] == '#') continue;
    if (begin == 0)
      joined.emplace_back(line, number);
    else
      joined.back().first += " " + line.substr(begin);
  }
  std::map<std::string, std::string, std::greater<>> named;  // longer names before their beginnings
  std::vector<TextRow> rows;
  for (auto& [text, line] : joined) {
    const bool names = text[0] == '@';
    const std::size_t begin = names ? text.find(" = ") + 3 : 0;
    std::string stands_for = text.substr(begin);
    for (const auto& [name, what] : named) stands_for = replaced(stands_for, name, what);
    if (names)
      named[text.substr(0, begin - 3)] = stands_for;
    else
      rows.push_back({parts_of(stands_for, " | "), file + " line " + std::to_string(line)});
  }
  if (rows.empty()) throw std::runtime_error("no rows in " + file);
  return rows;
}

/// Returns whether `text` is `pattern`, in which "..." stands for any text.
inline bool matches(const std::string& text, const std::string& pattern) {
  const std::vector<std::string> parts = parts_of(pattern, "...");
  if (parts.size() == 1) return text == parts[0];
  std::size_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    if (i == 0 && !text.starts_with(parts[0])) return false;
    if (last && !parts[i].empty())
      return text.size() >= at + parts[i].size() && text.ends_with(parts[i]);
    const std::size_t found = text.find(parts[i], at);
    if (found == std::string::npos) return false;
    at = found + parts[i].size();
  }
  return true;
}

}  // namespace shardproof
