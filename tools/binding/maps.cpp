#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/binding/lines.h"
#include "tools/binding/objects.h"
#include "tools/binding/shardproof.h"
#include "weights/maps/rope_tables.h"
#include "weights/safetensors/tensor_files.h"
#include "weights/storage/import_weights.h"

using namespace shardproof;
using namespace shardproof::binding;

namespace {

/// A caller's f32 arrays, as a checkpoint.
class GivenTensors : public TensorSource {
 public:
  GivenTensors(const nlohmann::json& tensors, const float* const* data) {
    std::size_t number = 0;
    for (const nlohmann::json& tensor : tensors)
      all_[tensor.at("name").get<std::string>()] = {tensor.at("shape").get<Shape>(),
                                                    data[number++]};
  }
  bool has(std::string_view name) const override { return all_.contains(name); }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : all_) names.push_back(name);
    return names;
  }
  Tensor read(std::string_view name) const override {
    const auto& [shape, from] = all_.find(name)->second;
    Tensor tensor;
    tensor.shape = shape;
    tensor.data.assign(from, from + element_count(shape));
    return tensor;
  }

 private:
  std::map<std::string, std::pair<Shape, const float*>, std::less<>> all_;
};

/// Calls visit(layer, line) for each line of the text, once for each layer that has it; for those
/// of the other sections with layer -1.
template <class Visit>
void for_each_line(const TextModel& model, Visit&& visit) {
  for (const TextSection section : kTextSections)
    for (const TextLine& line : model.text().section(section).lines)
      for (std::int64_t layer = 0; layer < model.sizes().layers; ++layer) {
        const bool of_layer = section == TextSection::layer;
        if (of_layer && !model.sizes().has(line.guard, layer)) continue;
        visit(of_layer ? layer : -1, line);
        if (!of_layer) break;
      }
}

nlohmann::json modules_of(const MappedObject& of) {
  nlohmann::json modules = nlohmann::json::array();
  for_each_line(*text_model(of.mapped.model), [&](std::int64_t layer, const TextLine& line) {
    for (const ModelMap::Module& module : of.map.modules) {
      if (module.value != line.name || of.mapped.sizes.left_out.contains(module.line)) continue;
      modules.push_back(
          {{"value", layer < 0 ? line.name : "layer" + std::to_string(layer) + "." + line.name},
           {"name", ModelMap::name_in(module.module, layer, 0)},
           {"pattern", module.pattern.text},
           {"take", module.pattern.take},
           {"input", module.input},
           {"dims", line.letters}});
    }
  });
  return modules;
}

/// Returns the names of all tensors that a line of the map reads; {x} stays.
nlohmann::json tensors_of(const MappedObject& of) {
  nlohmann::json tensors = nlohmann::json::array();
  for (const ModelMap::Source& source : of.map.sources) {
    if (of.mapped.sizes.left_out.contains(source.line)) continue;
    const bool each = source.tensor.find("{n}") != std::string::npos;
    for (std::int64_t layer = 0; layer < (each ? of.mapped.model.layers : 1); ++layer)
      tensors.push_back(ModelMap::name_in(source.tensor, layer, 0));
  }
  return tensors;
}

/// The answer for weights that were read: what was not, and the object.
nlohmann::json imported(ImportedWeights found, ShardproofObject** out) {
  *out = std::make_unique<WeightsObject>(std::move(found.weights)).release();
  return {{"unread", found.unread}};
}

}  // namespace

char* shardproof_mapped(const char* model, const char* map, const char* config,
                        ShardproofObject** out) noexcept {
  return object_answer(out, [&] {
    const GivenLine line(model);
    ModelMap read = parse_model_map(map, "the map");
    const ModelConfigFile entries = parse_config(config, "the config");
    MappedModel mapped = load_mapped_model(line.line, read, entries, line.own());
    // A table that cannot be made is a mistake of the config, not of the weights.
    for (const auto& [name, table] : mapped.sizes.tables)
      make_table(table.function, table.arguments, 1);
    auto object = std::make_unique<MappedObject>(std::move(read), std::move(mapped));
    object->unread = unread_entries(object->map, entries);
    return object;
  });
}

char* shardproof_mapped_list(ShardproofObject* object) noexcept {
  return answer([&] {
    const MappedObject& of = as<MappedObject>(object);
    const ModelConfig& model = of.mapped.model;
    nlohmann::json extents = nlohmann::json::object();
    for (const auto& [letter, extent] : text_model(model)->sizes().extents)
      extents[std::string(1, letter)] = extent;
    return nlohmann::json{{"model", with_text(print_model(model), model)},
                          {"layers", model.layers},
                          {"extents", extents},
                          {"modules", modules_of(of)},
                          {"tensors", tensors_of(of)},
                          {"unread", of.unread}};
  });
}

char* shardproof_mapped_weights(ShardproofObject* object, const char* tensors,
                                const float* const* data, ShardproofObject** out) noexcept {
  *out = nullptr;
  return answer([&] {
    const MappedObject& of = as<MappedObject>(object);
    const GivenTensors given(nlohmann::json::parse(tensors), data);
    return imported(read_weights(of.map, of.mapped, given), out);
  });
}

char* shardproof_mapped_files(ShardproofObject* object, const char* path,
                              ShardproofObject** out) noexcept {
  *out = nullptr;
  return answer([&] {
    const MappedObject& of = as<MappedObject>(object);
    return imported(read_weights(of.map, of.mapped, TensorFiles::open(path)), out);
  });
}
