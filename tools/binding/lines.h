#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/run/case.h"
#include "weights/maps/load_model.h"
#include "weights/text/text_model.h"

namespace shardproof::binding {

/// The line of a case or a model. Where the model is a text, "my.model,E=64", the text itself may
/// follow on lines of its own: the file is then not read.
struct GivenLine {
  std::string line;
  std::optional<ModelText> text;

  explicit GivenLine(std::string_view given) : line(given.substr(0, given.find('\n'))) {
    if (line.size() < given.size())
      text = parse_model_text(given.substr(line.size() + 1), "the model's text");
  }
  const ModelText* own() const { return text ? &*text : nullptr; }
};

inline Case case_of(std::string_view given) {
  const GivenLine line(given);
  return parse_case(line.line, {}, line.own());
}

inline ModelConfig model_of(std::string_view given) {
  const GivenLine line(given);
  return read_model(line.line, line.own());
}

/// Returns the line with the text of its model behind it, if it is one of a text.
inline std::string with_text(const std::string& line, const ModelConfig& model) {
  const TextModel* const text = text_model(model);
  return text == nullptr ? line : line + "\n" + print_model_text(text->text());
}

}  // namespace shardproof::binding
