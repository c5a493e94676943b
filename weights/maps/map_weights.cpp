#include "weights/maps/map_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "weights/maps/rope_tables.h"

namespace shardproof {
namespace {

class WeightReader {
 public:
  WeightReader(const ModelMap& map, const TextModel& model, const MappedSizes& sizes,
               const TensorSource& checkpoint)
      : map_(map), model_(model), sizes_(sizes), checkpoint_(checkpoint) {}

  MappedWeights read() {
    add(TextSection::embedding, -1);
    for (std::int64_t layer = 0; layer < model_.sizes().layers; ++layer)
      add(TextSection::layer, layer);
    add(TextSection::head, -1);
    for (const ModelMap::Ignored& ignored : map_.ignored)
      for (std::int64_t layer = 0; layer < model_.sizes().layers; ++layer)
        if (!sizes_.left_out.contains(ignored.line))
          read_.insert(ModelMap::name_in(ignored.tensor, layer, 0));
    for (const std::string& name : checkpoint_.names())
      if (!read_.contains(name)) weights_.unread.push_back(name);
    return std::move(weights_);
  }

 private:
  void add(TextSection section, std::int64_t layer) {
    for (const TextWeight& weight : model_.text().section(section).weights)
      if (layer < 0 || model_.sizes().has(weight.guard, layer)) add(weight, layer);
  }

  void add(const TextWeight& weight, std::int64_t layer) {
    const std::string& file = weight.from.empty() ? weight.name : weight.from;
    const std::string id = layer < 0 ? file : fmt::format("layer{}.{}", layer, file);
    Shape shape;
    for (const char letter : weight.letters) shape.push_back(model_.extent(letter));
    Tensor tensor;
    if (const auto table = sizes_.tables.find(weight.name); table != sizes_.tables.end()) {
      tensor = make_table(table->second.function, table->second.arguments, shape[0]);
      if (tensor.shape != shape)
        throw Error("model_map_c6",
                    fmt::format("{}: {} makes the shape [{}], not [{}]", id, table->second.function,
                                fmt::join(tensor.shape, ", "), fmt::join(shape, ", ")));
    } else {
      tensor = stored(weight, id, layer);
    }
    weights_.tensors.insert_or_assign(id, std::move(tensor));
  }

  /// Returns the weight by the map's first source whose tensor is there.
  Tensor stored(const TextWeight& weight, const std::string& id, std::int64_t layer) {
    std::vector<std::string> tried;
    for (const ModelMap::Source& source : map_.sources) {
      if (source.weight != weight.name || sizes_.left_out.contains(source.line)) continue;
      const std::string first = ModelMap::name_in(source.tensor, layer, 0);
      if (!checkpoint_.has(first)) {
        tried.push_back(first);
        continue;
      }
      try {
        return source.tensor.find("{x}") == std::string::npos
                   ? part(first, source.pattern, weight.letters)
                   : experts(source, weight, layer);
      } catch (const Error& error) {
        throw Error(error.label(),
                    fmt::format("{}{}: {}", map_.where(source.line), id, error.message()));
      }
    }
    if (tried.empty())
      throw Error("model_map_c4",
                  fmt::format("{}: the map says nowhere where {} is", map_.file, id));
    throw Error("model_map_c4",
                fmt::format("{}: the checkpoint has no {}", id, fmt::join(tried, ", nor ")));
  }

  /// Returns a weight of which each expert is a tensor.
  Tensor experts(const ModelMap::Source& source, const TextWeight& weight, std::int64_t layer) {
    const auto at = weight.letters.find('X');
    if (at == std::string::npos)
      throw Error("model_map_c5", fmt::format("{} has no letter X, experts", weight.letters));
    std::string letters = weight.letters;
    letters.erase(at, 1);
    Shape shape;
    for (const char letter : weight.letters) shape.push_back(model_.extent(letter));
    Tensor whole(shape);
    std::int64_t inner = 1;
    for (std::size_t i = at + 1; i < shape.size(); ++i) inner *= shape[i];
    for (std::int64_t x = 0; x < shape[at]; ++x) {
      const Tensor one = part(ModelMap::name_in(source.tensor, layer, x), source.pattern, letters);
      for (std::size_t i = 0; i < one.data.size(); ++i) {
        const auto place = static_cast<std::int64_t>(i);
        const std::int64_t outer = place / inner;
        whole.data[static_cast<std::size_t>((outer * shape[at] + x) * inner + place % inner)] =
            one.data[i];
      }
    }
    return whole;
  }

  Tensor part(const std::string& name, const TensorPattern& pattern, std::string_view letters) {
    if (!checkpoint_.has(name)) throw Error("model_map_c4", "the checkpoint has no " + name);
    read_.insert(name);
    // Weights of a layer that are parts of one tensor follow one another.
    if (last_name_ != name) {
      last_ = checkpoint_.read(name);
      last_name_ = name;
    }
    return unpack(last_, pattern, letters, model_.sizes().extents);
  }

  const ModelMap& map_;
  const TextModel& model_;
  const MappedSizes& sizes_;
  const TensorSource& checkpoint_;
  std::set<std::string> read_;
  std::string last_name_;
  Tensor last_;
  MappedWeights weights_;
};

}  // namespace

MappedWeights mapped_weights(const ModelMap& map, const TextModel& model, const MappedSizes& sizes,
                             const TensorSource& checkpoint) {
  return WeightReader(map, model, sizes, checkpoint).read();
}

}  // namespace shardproof
