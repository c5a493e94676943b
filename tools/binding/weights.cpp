#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/binding/lines.h"
#include "tools/binding/objects.h"
#include "tools/binding/shardproof.h"
#include "weights/maps/load_model.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"
#include "weights/storage/import_weights.h"
#include "weights/storage/store.h"

using namespace shardproof;
using namespace shardproof::binding;

char* shardproof_weights_generate(const char* model, std::uint64_t seed,
                                  ShardproofObject** out) noexcept {
  return object_answer(out, [&] {
    return std::make_unique<WeightsObject>(generate_weights(model_of(model), seed));
  });
}

char* shardproof_weights_load(const char* path, ShardproofObject** out) noexcept {
  return object_answer(out, [&] { return std::make_unique<WeightsObject>(load_weights(path)); });
}

char* shardproof_weights_import(const char* model, const char* map, const char* config,
                                const char* checkpoint, ShardproofObject** out) noexcept {
  return object_answer(out, [&] {
    ImportedWeights found = import_weights({model, map, checkpoint, config});
    return std::make_unique<WeightsObject>(std::move(found.weights));
  });
}

char* shardproof_weights_of(const char* model, const char* tensors, const float* const* data,
                            ShardproofObject** out) noexcept {
  return object_answer(out, [&] {
    std::map<std::string, Tensor> all;
    std::size_t number = 0;
    for (const nlohmann::json& tensor : nlohmann::json::parse(tensors)) {
      Tensor t;
      t.shape = tensor.at("shape").get<Shape>();
      const float* const from = data[number++];
      t.data.assign(from, from + element_count(t.shape));
      all.emplace(tensor.at("name").get<std::string>(), std::move(t));
    }
    Weights weights(model_of(model), std::move(all));
    validate(weights);
    return std::make_unique<WeightsObject>(std::move(weights));
  });
}

char* shardproof_weights_list(ShardproofObject* object) noexcept {
  return answer([&] {
    const Weights& weights = as<WeightsObject>(object).weights;
    nlohmann::json tensors = nlohmann::json::array();
    for (const WeightSpec& spec : weight_specs(weights.config(), weights.stored_type()))
      tensors.push_back(
          {{"name", spec.name}, {"dims", spec.dims}, {"shape", weights.shape(spec.name)}});
    return nlohmann::json{{"model", with_text(print_model(weights.config()), weights.config())},
                          {"tensors", tensors}};
  });
}

const float* shardproof_weights_data(ShardproofObject* object, const char* name) noexcept {
  auto* const of = dynamic_cast<WeightsObject*>(object);
  if (of == nullptr) return nullptr;
  const std::shared_ptr<const Tensor> weight = of->weights.find(name);
  if (weight == nullptr) return nullptr;
  of->lent[name] = weight;
  return weight->data.data();
}

char* shardproof_weights_save(ShardproofObject* object, const char* path) noexcept {
  return answer([&] {
    save_weights(as<WeightsObject>(object).weights, path);
    return nlohmann::json::object();
  });
}
