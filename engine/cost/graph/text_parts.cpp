#include "engine/cost/graph/detail/text_parts.h"

#include <utility>

namespace shardproof::cost {

std::vector<std::string> names_in(const Expression& e) {
  std::vector<std::string> names;
  if (e.kind == Expression::Kind::name) names.push_back(e.text);
  for (const Expression& arg : e.args)
    for (std::string& name : names_in(arg)) names.push_back(std::move(name));
  return names;
}

std::map<std::int64_t, std::int64_t> kinds_of_layers(const TextModel& model) {
  std::map<std::vector<bool>, std::int64_t> first;
  std::map<std::int64_t, std::int64_t> kinds;
  for (std::int64_t layer = 0; layer < model.sizes().layers; ++layer) {
    std::vector<bool> flags;
    for (const auto& [name, values] : model.sizes().flags)
      flags.push_back(values[static_cast<std::size_t>(layer)]);
    ++kinds[first.emplace(std::move(flags), layer).first->second];
  }
  return kinds;
}

std::string file_name(const TextModel& model, const std::string& name) {
  const TextWeight& weight = *model.weight(name);
  return weight.from.empty() ? weight.name : weight.from;
}

double cached_in(const TextModel& model, std::int64_t layer) {
  double all = 0.0;
  for (const TextLine& line : model.flat().section(TextSection::layer).lines) {
    if (!is_call(line.expression, ModelOp::append) || !model.sizes().has(line.guard, layer))
      continue;
    double elements = 1.0;
    for (const char letter : line.letters)
      if (letter != 'B' && letter != 'M') elements *= static_cast<double>(model.extent(letter));
    all += elements;
  }
  return all;
}

}  // namespace shardproof::cost
