#include "weights/storage/import_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "weights/base/memory.h"
#include "weights/maps/map_weights.h"
#include "weights/model/registry.h"
#include "weights/text/text_model.h"

namespace shardproof {

ImportedWeights import_weights(const CheckpointSource& source) {
  if (!is_text_file(source.model))
    throw Error("case_model", fmt::format("weights import: {} is not a model text, FILE.model, "
                                          "whose names a map has",
                                          source.model));
  const ModelMap map = load_model_map(source.map);
  const std::filesystem::path& file = source.checkpoint;
  const std::filesystem::path folder = is_directory(file) ? file : absolute(file).parent_path();
  const MappedModel mapped = load_mapped_model(
      source.model, map, load_config(source.config.empty() ? folder : source.config));
  return read_weights(map, mapped, TensorFiles::open(file));
}

ImportedWeights read_weights(const ModelMap& map, const MappedModel& mapped,
                             const TensorSource& checkpoint) {
  double bytes = 0.0, largest = 0.0;
  for (const WeightSpec& spec : weight_specs(mapped.model)) {
    bytes += 8.0 * static_cast<double>(element_count(spec.shape));
    largest = std::max(largest, static_cast<double>(element_count(spec.shape)));
  }
  require_memory(bytes + 8.0 * largest, "the weights and their file need about",
                 "a smaller model fits");
  MappedWeights found = mapped_weights(map, *text_model(mapped.model), mapped.sizes, checkpoint);
  ImportedWeights imported{Weights(mapped.model, std::move(found.tensors)),
                           checkpoint.names().size(), std::move(found.unread)};
  validate(imported.weights);
  return imported;
}

}  // namespace shardproof
