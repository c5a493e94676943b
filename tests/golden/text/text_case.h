#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "engine/run/case.h"
#include "weights/text/text_model.h"

namespace shardproof {

/// The path of a text in tests/data/models.
inline std::string text_file(std::string_view name) {
  return fmt::format("{}/models/{}.model", SHARDPROOF_TEST_DATA, name);
}

/// A case of a text in tests/data/models, with two layers, a prefill and two decode steps.
inline Case case_of_text(std::string_view name, std::string_view keys) {
  return parse_case(fmt::format("model={} gen=3 {}", text_file(name), keys));
}

/// A case of a text that is given as such.
inline Case case_with_text(const ModelText& text, std::string_view keys) {
  Case c = parse_case(fmt::format("gen=3 {}", keys));
  c.model = model_config(std::make_shared<const TextModel>(text, TextKeys{}, text.name + ".model"));
  return c;
}

}  // namespace shardproof
