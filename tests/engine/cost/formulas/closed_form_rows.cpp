#include "tests/engine/cost/formulas/closed_form_rows.h"

#include <fmt/format.h>

#include <optional>

namespace shardproof::cost {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    if (const std::string_view part = trimmed(text.substr(0, at)); !part.empty())
      parts.push_back(part);
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool matches(std::string_view pattern, std::string_view table) {
  if (!pattern.ends_with('*')) return pattern == table;
  return table.starts_with(pattern.substr(0, pattern.size() - 1));
}

Error not_a_form(std::string_view line) {
  return Error("closed_c0", fmt::format("'{}' is no line of closed forms", line));
}

FormBytes parse_bytes(std::string_view word, std::string_view line) {
  if (word == "partial") return FormBytes::partial;
  if (word == "activation") return FormBytes::activation;
  if (word == "statistic") return FormBytes::statistic;
  if (word == "weight") return FormBytes::weight;
  throw not_a_form(line);
}

FormMove parse_move(std::string_view text, std::string_view line) {
  static const std::map<std::string_view, OpKind> kinds{{"all_gather", OpKind::all_gather},
                                                        {"all_reduce", OpKind::all_reduce},
                                                        {"all_to_all", OpKind::all_to_all},
                                                        {"permute_axes", OpKind::permute_axes},
                                                        {"reduce_scatter", OpKind::reduce_scatter}};
  const std::vector<std::string_view> words = split_at(text, ' ');
  if (words.size() != 4 || !kinds.contains(words[0])) throw not_a_form(line);
  FormMove move;
  move.kind = kinds.at(words[0]);
  const std::size_t arrow = words[1].find('>');
  if ((arrow != std::string_view::npos) != (move.kind == OpKind::permute_axes))
    throw not_a_form(line);
  move.axes = Axes::parse(words[1].substr(0, arrow));
  if (arrow != std::string_view::npos) move.as = Axes::parse(words[1].substr(arrow + 1));
  move.D = words[2];
  move.bytes = parse_bytes(words[3], line);
  return move;
}

/// Returns the keys of a line's left side, one for each value and class: "k", "k YZ", "flops k YZ".
std::vector<std::string> keys_of(std::string_view left, std::string_view line) {
  std::vector<std::string_view> words = split_at(left, ' ');
  std::string before;
  if (!words.empty() && (words[0] == "flops" || words[0] == "held")) {
    before = std::string(words[0]) + " ";
    words.erase(words.begin());
  }
  if (words.empty() || words.size() > 2) throw not_a_form(line);
  std::vector<std::string> keys;
  for (const std::string_view value : split_at(words[0], ','))
    if (words.size() == 1)
      keys.push_back(before + std::string(value));
    else
      for (const std::string_view one : split_at(words[1], ','))
        keys.push_back(fmt::format("{}{} {}", before, value, one));
  return keys;
}

}  // namespace

FormRows parse_forms(std::string_view text, std::string_view table) {
  FormRows rows;
  bool mine = false;
  for (std::string_view line : split_at(text, '\n')) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (line.starts_with("forms ")) {
      mine = false;
      for (const std::string_view pattern : split_at(line.substr(6), ' '))
        mine = mine || matches(pattern, table);
      continue;
    }
    const std::size_t colon = line.find(" : ");
    if (colon == std::string_view::npos) throw not_a_form(line);
    const std::string_view right = trimmed(line.substr(colon + 3));
    for (const std::string& key : keys_of(line.substr(0, colon), line)) {
      if (key.starts_with("flops ") || key.starts_with("held ")) {
        if (mine) rows.counts[key] = right;
        continue;
      }
      std::vector<FormMove> moves;
      if (right != "nothing")
        for (const std::string_view move : split_at(right, ';'))
          moves.push_back(parse_move(move, line));
      if (mine) rows.moves[key] = std::move(moves);
    }
  }
  return rows;
}

}  // namespace shardproof::cost
