#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "engine/run/case.h"
#include "engine/run/plan.h"
#include "weights/text/text_model.h"

namespace shardproof {

/// The path of a text in tests/data/models.
inline std::string text_file(std::string_view name) {
  return fmt::format("{}/models/{}.model", SHARDPROOF_SOURCE "/tests/data", name);
}

/// A case of a text in tests/data/models, with two layers, a prefill and two decode steps.
inline Case case_of_text(std::string_view name, std::string_view keys) {
  return parse_case(fmt::format("model={} gen=3 {}", text_file(name), keys));
}

/// A case of a text that is given as such.
inline Case case_with_text(const ModelText& text, std::string_view keys) {
  Case c = parse_case(fmt::format("gen=3 {}", keys));
  c.model = model_with_weights(
      model_config(std::make_shared<const TextModel>(text, TextKeys{}, text.name + ".model")),
      c.numerics.weights);
  return c;
}

/// A plan of the case with the programs of another text, which is taken for the case's own.
inline RunPlan plan_of_other_text(const Case& c, const ModelText& text) {
  Case other = c;
  other.model =
      model_config(std::make_shared<const TextModel>(text, TextKeys{}, print_model(c.model)));
  RunPlan plan = make_plan(other);
  plan.source_case.model = c.model;
  plan.placed = c.model;
  for (PhasePrograms* phase : {&plan.prefill, &plan.decode}) {
    for (Program* program : {&phase->embed, &phase->layer, &phase->head, &phase->sample})
      program->rows = c.model.rows;
    for (Program& program : phase->other_layers) program.rows = c.model.rows;
  }
  plan.hand_over.rows = c.model.rows;
  for (Program& one : plan.other_hand_overs) one.rows = c.model.rows;
  return plan;
}

}  // namespace shardproof
