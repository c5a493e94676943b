#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace shardproof {

// Tables of (word, value) pairs: the words by which a key's values are written, in the order in
// which error messages list them.

/// Returns the word for `value`, or "" if it has none.
template <class Table, class Value>
std::string_view word_in(const Table& table, const Value& value) {
  const auto at = std::find_if(std::begin(table), std::end(table),
                               [&](const auto& row) { return row.second == value; });
  return at == std::end(table) ? std::string_view() : at->first;
}

/// Returns the value of `word`, or nullopt if the table lacks it.
template <class Table>
std::optional<typename Table::value_type::second_type> value_in(const Table& table,
                                                                std::string_view word) {
  const auto at = std::find_if(std::begin(table), std::end(table),
                               [&](const auto& row) { return row.first == word; });
  if (at == std::end(table)) return std::nullopt;
  return at->second;
}

/// Returns all words of the table, in order.
template <class Table>
std::vector<std::string_view> words_in(const Table& table) {
  std::vector<std::string_view> words;
  for (const auto& row : table) words.push_back(row.first);
  return words;
}

/// Returns a pointer to the row whose `name` equals `name`, or null.
template <class Rows>
auto row_named(const Rows& rows, std::string_view name) -> decltype(&*std::begin(rows)) {
  const auto at = std::find_if(std::begin(rows), std::end(rows),
                               [&](const auto& row) { return row.name == name; });
  return at == std::end(rows) ? nullptr : &*at;
}

}  // namespace shardproof
