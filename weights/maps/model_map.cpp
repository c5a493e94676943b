#include "weights/maps/model_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "weights/base/detail/text_file.h"
#include "weights/base/detail/words.h"
#include "weights/text/detail/names.h"

namespace shardproof {
namespace {

constexpr std::size_t kMostLines = 10'000, kMostLine = 4096;

/// The words of one statement, from left to right.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  std::string next() {
    rest_ = trim(rest_);
    const auto end = std::min(rest_.find_first_of(" \t"), rest_.size());
    const std::string word(rest_.substr(0, end));
    rest_ = trim(rest_.substr(end));
    return word;
  }
  bool take(std::string_view word) {
    Words copy = *this;
    if (copy.next() != word) return false;
    *this = copy;
    return true;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

class MapReader {
 public:
  explicit MapReader(ModelMap& map) : map_(map) {}

  void read(std::string_view raw, int number) {
    if (raw.size() > kMostLine)
      throw Error("model_map_c0",
                  fmt::format("a line has at most {} bytes, not {}", kMostLine, raw.size()));
    line_ = trim(raw.substr(0, raw.find('#')));
    number_ = number;
    if (!line_.empty()) statement();
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw Error("model_map_c0", fmt::format("'{}': {}", line_.substr(0, 80), why));
  }

  void statement() {
    Words words(line_);
    const std::string first = words.next();
    if (words.take("=")) {
      if (!is_model_name(first)) fail("write NAME = FORMULA");
      if (setting(first) != nullptr) fail(fmt::format("{} is given twice", first));
      map_.settings.push_back({first, ConfigFormula::parse(words.rest()), number_});
    } else if (words.take("<")) {
      read_source(first, words);
    } else if (words.take("~")) {
      read_module(first, words);
    } else if (first == "hf") {
      map_.model_class = words.next();
      map_.config_class = words.next();
      if (map_.config_class.empty() || !words.rest().empty()) fail("write hf MODEL CONFIG");
    } else if (first == "case") {
      for (auto& entry : ConfigFormula::parse_settings(words.rest()))
        map_.example.push_back(std::move(entry));
    } else if (first == "require") {
      map_.requirements.push_back({ConfigFormula::parse(words.rest()), number_});
    } else if (first == "ignore") {
      const std::string tensor = name_of(words);
      map_.ignored.push_back({tensor, condition_of(words), number_});
      if (!words.rest().empty()) fail("write ignore TENSOR [if FORMULA]");
    } else if (first != "grow") {
      fail(
          "a line is hf, case, require, ignore, NAME = FORMULA, WEIGHT < TENSOR PATTERN or VALUE ~ "
          "MODULE PATTERN");
    }
  }

  const ModelMap::Setting* setting(std::string_view name) const {
    for (const ModelMap::Setting& other : map_.settings)
      if (other.name == name) return &other;
    return nullptr;
  }

  /// Reads a word of a name with {n} and {x}.
  std::string name_of(Words& words) const {
    std::string name = words.next();
    if (name.empty()) fail("a name is missing");
    for (std::size_t at = name.find_first_of("{}"); at != std::string::npos;
         at = name.find_first_of("{}", at + 3))
      if (name.compare(at, 3, "{n}") != 0 && name.compare(at, 3, "{x}") != 0)
        fail("braces are {n}, the layer, and {x}, the expert");
    return name;
  }

  std::int64_t count_behind(Words& words, std::string_view word) const {
    if (!words.take(word)) return 0;
    const std::string digits = words.next();
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error != std::errc() || end != digits.data() + digits.size() || count < 0 ||
        count > 1'000'000)
      fail(fmt::format("{} {:?} is not a whole number from 0 to 1000000", word, digits));
    return count;
  }

  static std::optional<ConfigFormula> condition_of(Words& words) {
    if (!words.take("if")) return std::nullopt;
    ConfigFormula condition = ConfigFormula::parse(words.rest());
    words = Words("");
    return condition;
  }

  void read_source(const std::string& weight, Words& words) {
    const std::string tensor = name_of(words), pattern = words.next();
    const auto take = static_cast<std::size_t>(count_behind(words, "take"));
    const std::int64_t skip = count_behind(words, "skip");
    auto condition = condition_of(words);
    if (pattern.empty() || !words.rest().empty() || !is_model_name(weight))
      fail("write WEIGHT < TENSOR PATTERN [take N] [skip N] [if FORMULA]");
    map_.sources.push_back(
        {weight, tensor, TensorPattern::parse(pattern, take, skip), std::move(condition), number_});
  }

  void read_module(const std::string& value, Words& words) {
    const std::string module = name_of(words), pattern = words.next();
    const auto take = static_cast<std::size_t>(count_behind(words, "take"));
    const bool input = words.take("input");
    auto condition = condition_of(words);
    if (pattern.empty() || !words.rest().empty() || !is_model_name(value))
      fail("write VALUE ~ MODULE PATTERN [take N] [input] [if FORMULA]");
    map_.modules.push_back({value, module, TensorPattern::parse(pattern, take, 0), input,
                            std::move(condition), number_});
  }

  ModelMap& map_;
  std::string_view line_;
  int number_ = 0;
};

}  // namespace

std::string ModelMap::where(int line) const {
  return file.empty() ? fmt::format("line {}: ", line) : fmt::format("{} line {}: ", file, line);
}

std::string ModelMap::name_in(const std::string& pattern, std::int64_t layer, std::int64_t expert) {
  std::string name = pattern;
  for (const auto& [word, number] : {std::pair{"{n}", layer}, std::pair{"{x}", expert}})
    for (auto at = name.find(word); at != std::string::npos; at = name.find(word))
      name.replace(at, 3, std::to_string(number));
  return name;
}

ModelMap parse_model_map(std::string_view text, std::string_view file) {
  ModelMap map;
  map.file = file;
  MapReader reader(map);
  int number = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find('\n', at), text.size());
    try {
      if (static_cast<std::size_t>(++number) > kMostLines)
        throw Error("model_map_c0", fmt::format("a map has at most {} lines", kMostLines));
      reader.read(text.substr(at, end - at), number);
    } catch (const Error& error) {
      throw Error(error.label(), map.where(number) + error.message());
    }
    at = end + 1;
  }
  return map;
}

ModelMap load_model_map(const std::string& path) {
  return parse_model_map(read_text(path, {.unreadable = "model_map_f1",
                                          .no_text = "model_map_f2",
                                          .most = std::size_t{1} << 20,
                                          .kind = "map",
                                          .more = " (docs/spec-model-map.md)"}),
                         path);
}

}  // namespace shardproof
