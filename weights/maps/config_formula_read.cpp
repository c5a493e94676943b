// Formulas over a config.json, read by precedence as in Python.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "weights/maps/config_formula.h"
#include "weights/text/detail/names.h"
#include "weights/text/formula.h"

namespace shardproof {
namespace {

constexpr int kDeepest = 32;

/// Binary operators by level, the loosest first; ** binds tighter than a sign before it.
constexpr std::array<std::array<std::string_view, 7>, 5> kLevels{{
    {"or"},
    {"and"},
    {"==", "!=", "<=", ">=", "<", ">", "in"},
    {"+", "-"},
    {"//", "*", "/", "%"},
}};

}  // namespace

class ConfigFormula::Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Part whole() {
    Part part = choice();
    blanks();
    if (at_ != text_.size()) fail("unexpected text after the formula");
    return part;
  }

  std::vector<std::pair<std::string, Part>> settings() {
    std::vector<std::pair<std::string, Part>> found;
    do {
      const std::string name = word();
      if (name.empty() || !take("=")) fail("write name=value, name=value");
      found.emplace_back(name, choice());
    } while (take(","));
    blanks();
    if (at_ != text_.size()) fail("unexpected text after the formula");
    return found;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error("model_map_c0",
                fmt::format("'{}': at character {}: {}", text_.substr(0, 80), at_ + 1, why));
  }

  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  /// Takes a symbol, or a word that no letter follows.
  bool take(std::string_view symbol) {
    blanks();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    const std::size_t end = at_ + symbol.size();
    if (is_name_char(symbol[0]) && end < text_.size() && is_name_char(text_[end])) return false;
    // "*" is not the beginning of "**", nor "<" that of "<=".
    if (symbol == "*" && text_.substr(at_).starts_with("**")) return false;
    at_ = end;
    return true;
  }

  std::string word() {
    blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    const std::string_view found = text_.substr(begin, at_ - begin);
    if (!is_model_name(found)) at_ = begin;
    return at_ == begin ? "" : std::string(found);
  }

  static Part node(Kind kind, std::string_view word, std::vector<Part> args) {
    Part part;
    part.kind = kind;
    part.word = word;
    part.args = std::move(args);
    return part;
  }

  Part choice() {
    if (++depth_ > kDeepest) fail(fmt::format("it is nested deeper than {}", kDeepest));
    Part part = binary(0);
    if (take("if")) {
      Part condition = binary(0);
      if (!take("else")) fail("write A if CONDITION else B");
      Part other = choice();
      part = node(Kind::choice, "if", {std::move(condition), std::move(part), std::move(other)});
    }
    --depth_;
    return part;
  }

  Part binary(std::size_t level) {
    if (level == kLevels.size()) return sign();
    if (level == 2 && take("not")) {
      if (++depth_ > kDeepest) fail(fmt::format("it is nested deeper than {}", kDeepest));
      Part part = node(Kind::unary, "not", {binary(level)});
      --depth_;
      return part;
    }
    Part part = binary(level + 1);
    int operators = 0;
    for (bool again = true; again;) {
      again = false;
      for (const std::string_view symbol : kLevels[level]) {
        if (symbol.empty() || !take(symbol)) continue;
        if (++operators > 64) fail("it has more than 64 operators in a row");
        if (level == 2 && operators > 1) fail("write one comparison: a < b and b < c");
        part = node(Kind::binary, symbol, {std::move(part), binary(level + 1)});
        again = true;
        break;
      }
    }
    return part;
  }

  Part sign() {
    if (take("-")) {
      if (++depth_ > kDeepest) fail(fmt::format("it is nested deeper than {}", kDeepest));
      Part part = node(Kind::unary, "-", {sign()});
      --depth_;
      return part;
    }
    Part base = postfix();
    if (!take("**")) return base;
    if (++depth_ > kDeepest) fail(fmt::format("it is nested deeper than {}", kDeepest));
    Part power = node(Kind::binary, "**", {std::move(base), sign()});
    --depth_;
    return power;
  }

  Part postfix() {
    Part part = primary();
    int indices = 0;
    while (take("[")) {
      if (++indices > kDeepest) fail(fmt::format("it has more than {} indices", kDeepest));
      Part index = choice();
      if (!take("]")) fail("] is missing");
      part = node(Kind::index, "[]", {std::move(part), std::move(index)});
    }
    return part;
  }

  std::vector<Part> list(std::string_view end) {
    std::vector<Part> parts;
    if (take(end)) return parts;
    do parts.push_back(choice());
    while (take(","));
    if (!take(end)) fail(fmt::format("{} is missing", end));
    return parts;
  }

  Part primary() {
    blanks();
    if (at_ == text_.size()) fail("a value is missing");
    if (take("(")) {
      Part part = choice();
      if (!take(")")) fail(") is missing");
      return part;
    }
    if (take("[")) return node(Kind::list, "list", list("]"));
    if (text_[at_] == '\'' || text_[at_] == '"') return quoted();
    if (text_[at_] >= '0' && text_[at_] <= '9') return number();
    const std::string name = word();
    if (name.empty()) fail("a value is missing");
    if (name == "None") return literal(nullptr);
    if (name == "True") return literal(true);
    if (name == "False") return literal(false);
    if (!take("(")) return node(Kind::name, name, {});
    if (name != "dict") return node(Kind::call, name, list(")"));
    Part dict = node(Kind::dict, name, {});
    if (take(")")) return dict;
    do {
      dict.keys.push_back(word());
      if (dict.keys.back().empty() || !take("=")) fail("write dict(name=value, ...)");
      dict.args.push_back(choice());
    } while (take(","));
    if (!take(")")) fail(") is missing");
    return dict;
  }

  static Part literal(Value value) {
    Part part;
    part.literal = std::move(value);
    return part;
  }

  Part quoted() {
    const auto end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail("the text has no end");
    Part part = literal(std::string(text_.substr(at_ + 1, end - at_ - 1)));
    at_ = end + 1;
    return part;
  }

  Part number() {
    const std::size_t begin = at_;
    bool whole = true;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool exponent_sign =
          (c == '-' || c == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (c == '.' || c == 'e' || c == 'E' || exponent_sign)
        whole = false;
      else if (c < '0' || c > '9')
        break;
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    const std::optional<double> value = number_in(word);
    if (!value || (whole && *value > 9e18)) fail(fmt::format("{} is not a number", word));
    return whole ? literal(static_cast<std::int64_t>(*value)) : literal(*value);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

ConfigFormula ConfigFormula::parse(std::string_view text) {
  ConfigFormula formula;
  formula.text_ = text;
  formula.whole_ = Reader(text).whole();
  return formula;
}

std::vector<std::pair<std::string, ConfigFormula>> ConfigFormula::parse_settings(
    std::string_view text) {
  std::vector<std::pair<std::string, ConfigFormula>> settings;
  for (auto& [name, part] : Reader(text).settings()) {
    ConfigFormula formula;
    formula.text_ = text;
    formula.whole_ = std::move(part);
    settings.emplace_back(name, std::move(formula));
  }
  return settings;
}

}  // namespace shardproof
