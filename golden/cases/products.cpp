#include "golden/cases/products.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <optional>

#include "golden/cases/strata.h"

namespace shardproof::cases {
namespace {

/// Alternatives in brackets, and where they stand in a line.
struct Bracketed {
  std::size_t begin = 0, end = 0;
  std::vector<std::string> alternatives = {};
};

std::string_view trimmed(std::string_view text) {
  const auto begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

/// Returns the first alternatives that `open` begins, '{' or '(', if there are any.
std::optional<Bracketed> find_bracketed(std::string_view line, char open) {
  const std::size_t begin = line.find(open);
  if (begin == std::string_view::npos) return std::nullopt;
  Bracketed found{.begin = begin};
  std::size_t from = begin + 1;
  int depth = 0;
  for (std::size_t at = from; found.end == 0; ++at) {
    const char c = line.at(at);
    const bool closes = c == '}' || c == ')';
    if (depth == 0 && (c == '|' || closes)) {
      found.alternatives.emplace_back(trimmed(line.substr(from, at - from)));
      from = at + 1;
      if (closes) found.end = at + 1;
    }
    depth += c == '{' || c == '(' ? 1 : closes ? -1 : 0;
  }
  return found;
}

/// Appends `line` with every alternative in braces.
void add_products(const std::string& line, std::vector<std::string>& all) {
  const auto found = find_bracketed(line, '{');
  if (!found) return all.push_back(line);
  for (const std::string& one : found->alternatives)
    add_products(line.substr(0, found->begin) + one + line.substr(found->end), all);
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Returns `line` with the alternatives in parentheses that have their turn.
std::string in_turn(std::string line, std::size_t turn) {
  while (const auto found = find_bracketed(line, '(')) {
    std::size_t end = found->end, every = 1;
    if (end + 1 < line.size() && line[end] == '/' && is_digit(line[end + 1]))
      every = std::stoul(line.substr(end + 1), &end), end += found->end + 1;
    const auto& all = found->alternatives;
    line.replace(found->begin, end - found->begin, all[turn / every % all.size()]);
  }
  return line;
}

using Words = std::map<std::string, std::string>;

Words shipped_words() {
  std::vector<std::string> all, usual;
  for (const Strategy& s : all_strategies()) {
    all.push_back(s.to_string());
    if (decodes(s) && strata::runs(s, Block::parallel)) usual.push_back(s.to_string());
  }
  return {{"all", fmt::format("{}", fmt::join(all, "|"))},
          {"usual", fmt::format("{}", fmt::join(usual, "|"))}};
}

/// Returns `line` with what its words stand for, those of "@first".
std::string with_words(std::string line, const Words& words) {
  for (std::size_t at = 0; (at = line.find('@', at)) != std::string::npos;) {
    const auto end = std::find_if_not(line.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                      line.end(), [](char c) { return std::islower(c) != 0; });
    const auto size = static_cast<std::size_t>(end - line.begin()) - at;
    line.replace(at, size, words.at(line.substr(at + 1, size - 1)));
  }
  return line;
}

/// The lines of a text without comments, those that go on in the next joined to it.
std::vector<std::string> written_lines(std::string_view text) {
  std::vector<std::string> lines;
  bool goes_on = false;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const auto last = line.find_last_not_of(' ');
    if (last == std::string_view::npos) continue;
    line = line.substr(0, last + 1);
    const bool more = line.back() == '\\';
    if (more) line.remove_suffix(1);
    if (goes_on)
      lines.back() += line;
    else
      lines.emplace_back(line);
    goes_on = more;
  }
  return lines;
}

/// A line, and those that go on from it.
class Group {
 public:
  explicit Group(std::string line) : line_(std::move(line)) {
    if (line_.starts_with("turn=")) {
      std::size_t digits = 0;
      turn_ = std::stoul(line_.substr(5), &digits);
      line_.erase(0, 5 + digits);
    }
  }
  void go_on(const std::string& line) { rests_.push_back(line); }

  void add_to(std::vector<std::string>& all) {
    std::vector<std::string> begins;
    add_products(line_, begins);
    if (rests_.empty()) rests_.emplace_back();
    for (const std::string& begin : begins)
      for (const std::string& rest : rests_) {
        std::vector<std::string> whole;
        add_products(begin + rest, whole);
        for (const std::string& line : whole) all.push_back(in_turn(line, turn_++));
      }
  }

 private:
  std::string line_;
  std::vector<std::string> rests_;
  std::size_t turn_ = 0;
};

std::vector<std::string> split(std::string_view line, char separator) {
  std::vector<std::string> parts;
  while (!line.empty()) {
    const auto part = line.substr(0, line.find(separator));
    if (!part.empty()) parts.emplace_back(part);
    line.remove_prefix(std::min(part.size() + 1, line.size()));
  }
  return parts;
}

/// Returns `value` with the numbers that "3L" and "2L+1" are.
std::string with_length(std::string value, std::int64_t L) {
  for (std::size_t at; (at = value.find('L')) != std::string::npos;) {
    std::size_t begin = at, end = at + 1;
    while (begin > 0 && is_digit(value[begin - 1])) --begin;
    std::int64_t number = begin == at ? L : L * std::stoll(value.substr(begin));
    if (value.substr(end, 2) == "+1") ++number, end += 2;
    value.replace(begin, end - begin, std::to_string(number));
  }
  return value;
}

/// The keys of a line, as a case line has them.
class Keys {
 public:
  explicit Keys(const std::string& line) {
    for (const std::string& key : split(line, ' ')) {
      const auto equals = key.find('=');
      keys_.emplace_back(key.substr(0, equals), key.substr(std::min(equals, key.size() - 1) + 1));
    }
    if (const std::string* name = find("strategy")) spread(Strategy::parse(*name));
  }

  bool names_one_strategy_twice() const {
    const std::string *prefill = find("prefill"), *decode = find("decode");
    return prefill != nullptr && decode != nullptr && *prefill == *decode && !spread_;
  }

  Case parse() const {
    std::string line;
    for (const auto& [key, value] : keys_)
      if (!value.empty()) line += fmt::format("{}={} ", key, value);
    return parse_case(line);
  }

 private:
  const std::string* find(std::string_view key) const {
    const auto at =
        std::find_if(keys_.begin(), keys_.end(), [&](const auto& one) { return one.first == key; });
    return at == keys_.end() ? nullptr : &at->second;
  }

  void spread(const Strategy& strategy) {
    spread_ = true;
    const std::int64_t L = smallest_length(strategy, Torus::parse(*find("torus")));
    for (auto& [key, value] : keys_) {
      const auto other = value.find("//");
      if (other != std::string::npos)
        value =
            decodes(strategy) ? value.substr(0, other) : with_length(value.substr(other + 2), L);
    }
    const std::string& name = strategy.to_string();
    std::erase_if(keys_, [](const auto& one) { return one.first == "strategy"; });
    keys_.emplace_back("prefill", name);
    keys_.emplace_back("decode", decodes(strategy) ? name : "ws2d:heads");
    if (strata::runs(strategy, Block::parallel)) return;
    std::erase_if(keys_, [](const auto& one) { return one.first == "block"; });
    keys_.emplace_back("block", "serial");
  }

  std::vector<std::pair<std::string, std::string>> keys_;
  bool spread_ = false;
};

}  // namespace

std::vector<std::string> lines_of(std::string_view text) {
  Words words = shipped_words();
  std::vector<Group> groups;
  for (const std::string& written : written_lines(text)) {
    const auto equals = written.find(" = ");
    if (written[0] == '@')
      words[written.substr(1, equals - 1)] = with_words(written.substr(equals + 3), words);
    else if (written[0] == ' ')
      groups.back().go_on(with_words(written, words));
    else
      groups.emplace_back(with_words(written, words));
  }
  std::vector<std::string> lines;
  for (Group& group : groups) group.add_to(lines);
  return lines;
}

std::vector<Case> cases_of(std::string_view text) {
  std::vector<Case> cases;
  for (const std::string& line : lines_of(text))
    if (const Keys keys(line); !keys.names_one_strategy_twice()) cases.push_back(keys.parse());
  return cases;
}

}  // namespace shardproof::cases
