#include "engine/layouts/text_programs.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/layouts/detail/text_layouts.h"
#include "engine/layouts/detail/text_section.h"
#include "weights/text/rules.h"

namespace shardproof {
namespace {

/// Returns the values of the embedding that a layer or the head reads.
std::vector<std::string> read_from_embedding(const ModelText& text) {
  std::vector<std::string> names;
  const auto& lines = text.section(TextSection::embedding).lines;
  for (const TextLine& line : lines)
    for (const TextSection section : {TextSection::layer, TextSection::head})
      for (const TextLine& reader : text.section(section).lines) {
        const Reads reads = reads_of(text, reader);
        if (std::find(reads.now.begin(), reads.now.end(), line.name) != reads.now.end() &&
            std::find(names.begin(), names.end(), line.name) == names.end())
          names.push_back(line.name);
      }
  return names;
}

/// Returns the truth values of the flags by which lines of a layer are there.
std::vector<bool> guards_in(const TextModel& model, std::int64_t layer) {
  std::vector<bool> there;
  for (const TextLine& line : model.flat().section(TextSection::layer).lines)
    if (line.guard) there.push_back(model.sizes().has(line.guard, layer));
  return there;
}

/// Returns the names of a layer's caches.
std::vector<std::string> caches_of(const TextModel& model, std::int64_t layer) {
  std::vector<std::string> caches;
  for (const TextLine& line : model.flat().section(TextSection::layer).lines) {
    const Expression& e = line.expression;
    if (e.kind == Expression::Kind::call && e.op == ModelOp::append &&
        model.sizes().has(line.guard, layer))
      caches.push_back(line.name);
  }
  return caches;
}

}  // namespace

PhasePrograms text_programs(const LayoutTable& table, const ModelConfig& config,
                            const Extents& extents, const Torus& torus, const Sampling& sampling) {
  const TextModel& model = *text_model(config);
  const ModelText& text = model.flat();
  const TextLayouts layouts(table, model, extents, torus);
  const TextSetting setting{config, model, layouts, extents, torus};
  EmbeddingValues of_embedding;

  PhasePrograms programs;
  programs.torus = torus;
  programs.residual = layouts.residual();
  {
    TextSectionWriter writer(setting, "embed", {});
    writer.write(TextSection::embedding, 0);
    std::vector<std::string> outputs{writer.bring("embed", layouts.residual()).name};
    std::vector<std::string> names = read_from_embedding(text);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string name = names[i];
      const WrittenValue value = writer.current(name);
      of_embedding.layouts.emplace(name, value.layout);
      if (name != "embed") outputs.push_back(value.name);
      // What exists in places only takes its indicators along.
      const std::vector<std::string> indicators = writer.indicators_of(name);
      of_embedding.indicators[name] = indicators;
      for (const std::string& indicator : indicators)
        if (std::find(names.begin(), names.end(), indicator) == names.end())
          names.push_back(indicator);
    }
    of_embedding.layouts["embed"] = layouts.residual();
    programs.embed = writer.finish(outputs);
  }
  std::vector<std::vector<bool>> variants;
  for (std::int64_t layer = 0; layer < model.sizes().layers; ++layer) {
    const std::vector<bool> guards = guards_in(model, layer);
    const auto known = std::find(variants.begin(), variants.end(), guards);
    programs.layer_programs.push_back(static_cast<std::size_t>(known - variants.begin()));
    if (known != variants.end()) continue;
    TextSectionWriter writer(setting, std::string(kLayerProgram), of_embedding);
    writer.stream("in");
    writer.write(TextSection::layer, layer);
    std::vector<std::string> outputs{writer.bring("out", layouts.residual()).name};
    for (const std::string& name : caches_of(model, layer))
      outputs.push_back(writer.own_cache(name).name);
    (variants.empty() ? programs.layer : programs.other_layers.emplace_back()) =
        writer.finish(outputs);
    variants.push_back(guards);
  }
  if (variants.size() < 2) programs.layer_programs.clear();
  TextSectionWriter writer(setting, "head", of_embedding);
  writer.stream("out");
  writer.write(TextSection::head, 0);
  programs.head = writer.finish({writer.last_logits()});
  programs.sample = sampling_program(sampling);
  programs.sample.rows = config.rows;
  programs.sample.inputs.at(0).role.last = true;
  return programs;
}

}  // namespace shardproof
