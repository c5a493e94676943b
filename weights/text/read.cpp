// Model texts, one statement a line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "weights/base/detail/word_table.h"
#include "weights/base/detail/words.h"
#include "weights/base/nearest.h"
#include "weights/text/detail/names.h"
#include "weights/text/model_text.h"
#include "weights/text/rules.h"

namespace shardproof {
namespace {

constexpr std::array<std::pair<std::string_view, TextSection>, 3> kSections{
    {{"embedding", TextSection::embedding},
     {"layer", TextSection::layer},
     {"head", TextSection::head}}};

constexpr std::array<std::pair<std::string_view, TextWeightKind>, 7> kWeightKinds{
    {{"matrix", TextWeightKind::matrix},
     {"table", TextWeightKind::table},
     {"gain", TextWeightKind::gain},
     {"bias", TextWeightKind::bias},
     {"cosines", TextWeightKind::cosines},
     {"sines", TextWeightKind::sines},
     {"slopes", TextWeightKind::slopes}}};

[[noreturn]] void malformed(std::string_view line, std::string_view why) {
  throw Error("model_c0", fmt::format("'{}': {}", line.substr(0, 80), why));
}

/// Returns the rest of a line that begins with a word and a blank.
std::optional<std::string_view> after(std::string_view line, std::string_view word) {
  if (!line.starts_with(word) || line.size() == word.size() ||
      (line[word.size()] != ' ' && line[word.size()] != '\t'))
    return std::nullopt;
  return trim(line.substr(word.size()));
}

class TextReader {
 public:
  explicit TextReader(ModelText& text) : text_(text) {}

  void read(std::string_view raw, int number) {
    if (number > kMostTextLines)
      throw Error("model_c0", fmt::format("a model has at most {} lines", kMostTextLines));
    if (raw.size() > static_cast<std::size_t>(kMostLineBytes))
      throw Error("model_c0",
                  fmt::format("a line has at most {} bytes, not {}", kMostLineBytes, raw.size()));
    const std::string_view line = trim(raw.substr(0, raw.find('#')));
    number_ = number;
    if (!line.empty()) statement(line);
  }

 private:
  void statement(std::string_view line) {
    if (const auto section = value_in(kSections, line)) {
      begin(line, *section);
    } else if (const auto name = after(line, "model")) {
      if (!text_.name.empty()) malformed(line, "a text is one model");
      for (const char c : *name)
        if (!is_name_char(c) && c != '-' && c != '.' && c != '=')
          malformed(line, "a model's name has letters, digits, and - . = _");
      text_.name = std::string(*name);
    } else if (const auto dim = after(line, "dim")) {
      read_dim(line, *dim);
    } else if (const auto value = after(line, "number")) {
      read_number(line, *value);
    } else if (const auto flag = after(line, "flag")) {
      if (!is_model_name(*flag)) malformed(line, "write flag NAME");
      text_.flags.push_back({std::string(*flag), number_});
    } else if (const auto sizes = after(line, "small")) {
      read_small(line, *sizes);
    } else if (const auto weight = after(line, "weight")) {
      read_weight(line, *weight);
    } else {
      read_line(line);
    }
  }

  void begin(std::string_view line, TextSection section) {
    if (section_ >= static_cast<int>(section))
      malformed(line, "the sections are embedding, layer and head, once each and in this order");
    section_ = static_cast<int>(section);
  }

  ModelText::Section& section(std::string_view line) {
    if (section_ < 0)
      malformed(line, "a weight or value stands in a section: embedding, layer, head");
    return text_.sections[static_cast<std::size_t>(section_)];
  }

  void read_dim(std::string_view line, std::string_view rest) {
    const auto blank = rest.find_first_of(" \t=");
    const std::string_view letter = rest.substr(0, blank);
    if (letter.size() != 1 || !are_letters(letter))
      malformed(line, "write dim LETTER WORDS or dim LETTER = FORMULA");
    TextDim dim{letter[0], "", std::nullopt, number_};
    const std::string_view words = trim(rest.substr(1));
    if (words.starts_with('='))
      dim.formula = Formula::parse(words.substr(1));
    else
      dim.words = std::string(words);
    text_.dims.push_back(std::move(dim));
  }

  void read_number(std::string_view line, std::string_view rest) {
    const auto equals = rest.find('=');
    const std::string_view name = trim(rest.substr(0, equals));
    if (!is_model_name(name)) malformed(line, "write number NAME or number NAME = FORMULA");
    TextNumber number{std::string(name), std::nullopt, number_};
    if (equals != std::string_view::npos) number.formula = Formula::parse(rest.substr(equals + 1));
    text_.numbers.push_back(std::move(number));
  }

  void read_small(std::string_view line, std::string_view rest) {
    for (const std::string_view pair : split(rest, ",")) {
      const auto parts = split(pair, "=");
      if (parts.size() != 2 || !is_model_name(parts[0]) || parts[1].empty())
        malformed(line, "write small KEY=VALUE, KEY=VALUE");
      const SmallSize size{std::string(parts[1]), number_};
      if (!text_.small.try_emplace(std::string(parts[0]), size).second)
        throw Error("model_c2", fmt::format("{} is given twice", parts[0]));
    }
  }

  /// Takes " if FLAG" or " unless FLAG" off the end of a line.
  static std::optional<Guard> take_guard(std::string_view& line) {
    for (const auto& [word, value] : {std::pair{" if ", true}, std::pair{" unless ", false}}) {
      const auto at = line.rfind(word);
      if (at == std::string_view::npos) continue;
      const std::string_view flag = trim(line.substr(at + std::string_view(word).size()));
      if (!is_model_name(flag)) malformed(line, "a guard is `if FLAG` or `unless FLAG`");
      line = trim(line.substr(0, at));
      return Guard{std::string(flag), value};
    }
    return std::nullopt;
  }

  /// Reads "NAME : LETTERS".
  static std::pair<std::string, std::string> declaration(std::string_view line,
                                                         std::string_view text) {
    const auto colon = text.find(':');
    const std::string_view name = trim(text.substr(0, colon));
    const std::string_view letters =
        colon == std::string_view::npos ? "" : trim(text.substr(colon + 1));
    if (!is_model_name(name) || !are_letters(letters))
      malformed(line, "a name and its dim letters are written NAME : LETTERS");
    return {std::string(name), std::string(letters)};
  }

  void read_weight(std::string_view line, std::string_view rest) {
    TextWeight weight;
    weight.guard = take_guard(rest);
    if (const auto from = rest.find(" from "); from != std::string_view::npos) {
      weight.from = std::string(trim(rest.substr(from + 6)));
      if (!is_model_name(weight.from)) malformed(line, "write `from NAME`, its name in files");
      rest = trim(rest.substr(0, from));
    }
    if (const auto is = rest.find(" is "); is != std::string_view::npos) {
      read_kind(line, trim(rest.substr(is + 4)), weight);
      rest = trim(rest.substr(0, is));
    }
    std::tie(weight.name, weight.letters) = declaration(line, rest);
    weight.line = number_;
    section(line).weights.push_back(std::move(weight));
  }

  static void read_kind(std::string_view line, std::string_view text, TextWeight& weight) {
    const auto words = split(text, " ");
    const auto kind = value_in(kWeightKinds, words[0]);
    const bool turns = kind == TextWeightKind::cosines || kind == TextWeightKind::sines;
    if (!kind || words.size() != (turns ? 4 : 1) ||
        (turns && words[1] != "half" && words[1] != "interleaved"))
      malformed(line,
                fmt::format("a weight is one of {}; cosines and sines are written `cosines half "
                            "CHANNELS THETA`",
                            fmt::join(words_in(kWeightKinds), ", ")));
    weight.kind = *kind;
    weight.parameters.assign(words.begin() + 1, words.end());
  }

  void read_line(std::string_view line) {
    std::string_view rest = line;
    TextLine value;
    value.guard = take_guard(rest);
    const auto equals = rest.find(" = ");
    if (equals == std::string_view::npos)
      malformed(line, "write NAME : LETTERS = EXPRESSION; docs/spec-model-text.md has the grammar");
    std::string_view left = trim(rest.substr(0, equals));
    if (const auto where = left.find(" where "); where != std::string_view::npos) {
      value.where = std::string(trim(left.substr(where + 7)));
      if (!is_model_name(value.where)) malformed(line, "write `where NAME` behind the letters");
      left = trim(left.substr(0, where));
    }
    std::tie(value.name, value.letters) = declaration(line, left);
    value.line = number_;
    value.expression = parse_expression(rest.substr(equals + 3));
    section(line).lines.push_back(std::move(value));
  }

  ModelText& text_;
  int number_ = 0;
  int section_ = -1;
};

}  // namespace

std::string_view to_string(TextSection section) { return word_in(kSections, section); }

std::string_view to_string(TextWeightKind kind) { return word_in(kWeightKinds, kind); }

std::string_view result_of(TextSection section) {
  constexpr std::string_view kResults[] = {"embed", "out", "logits"};
  return kResults[static_cast<std::size_t>(section)];
}

const TextDim* ModelText::dim(char letter) const {
  const auto at = std::find_if(dims.begin(), dims.end(),
                               [&](const TextDim& dim) { return dim.letter == letter; });
  return at == dims.end() ? nullptr : &*at;
}

const TextNumber* ModelText::number(std::string_view word) const {
  return row_named(numbers, word);
}

const TextFlag* ModelText::flag(std::string_view word) const { return row_named(flags, word); }

bool ModelText::is_number(std::string_view word) const {
  return number_in(word) || number(word) != nullptr ||
         (word.size() == 1 && dim(word[0]) != nullptr);
}

std::string ModelText::where(int line) const {
  return fmt::format("{}{}line {}: ", file, file.empty() ? "" : " ", line);
}

ModelText parse_model_text(std::string_view text, std::string_view file) {
  ModelText model;
  model.file = std::string(file);
  TextReader reader(model);
  int number = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    ++number;
    try {
      reader.read(text.substr(begin, end - begin), number);
    } catch (const Error& error) {
      throw Error(error.label(), model.where(number) + error.message());
    }
    begin = end + 1;
  }
  check_model_text(model);
  return model;
}

}  // namespace shardproof
