#include "tools/drawing/detail/scene.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shardproof {

Scene::Scene(const Program& of_program, const std::map<std::string, Type>& of_types,
             const Torus& on_torus, const Numerics& numerics, const ModelConfig& config,
             const PictureOptions& with_options)
    : program(of_program),
      types(of_types),
      torus(on_torus),
      options(with_options),
      chip(with_options.chip.value_or(example_chip(on_torus))),
      glyphs(torus, chip),
      ledger(count(of_program, of_types, on_torus, numerics, config)) {
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    if (is_collective(program.ops[i].kind)) {
      ++collectives;
      elements += sent(i);
      bytes += sent(i) * ledger.steps[i].wire_bytes;
    }
}

const std::string& Scene::heading() const {
  return options.title.empty() ? program.name : options.title;
}

double Scene::sent(std::size_t step) const {
  return elements_per_chip(ledger.steps[step], torus.chips(), options.paper);
}

std::string Scene::local_text(const Type& type) const {
  return fmt::format("{}", fmt::join(local_shape(type.layout, type.shape, torus), "x"));
}

}  // namespace shardproof
