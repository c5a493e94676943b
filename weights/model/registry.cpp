#include "weights/model/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "weights/base/detail/word_table.h"
#include "weights/model/model_rows.h"
#include "weights/model/scale_rows.h"

namespace shardproof {
namespace {

std::int64_t extent(char letter, const ModelConfig& c, const PassExtents& pass) {
  if (c.rows != nullptr && c.rows->extent(letter) > 0) return c.rows->extent(letter);
  switch (letter) {
    case 'B':
      return pass.B;
    case 'L':
      return pass.L;
    case 'M':
      return pass.M;
    case 'N':
      return pass.N;
    case 'T':
      return pass.T;
    case 'E':
      return c.E;
    case 'F':
      return c.F;
    case 'H':
      return c.H;
    case 'K':
      return c.K;
    case 'Q':
      return c.Q;
    case 'V':
      return c.V;
    case 'P':
      return c.positions;
    default:  // J, the rotated pairs
      return static_cast<std::int64_t>(c.rotary * static_cast<double>(c.Q)) / 2;
  }
}

WeightSpec spec_of(const WeightRow& row, std::int64_t layer, const ModelConfig& config) {
  WeightSpec spec{.name = weight_id(layer, row.name),
                  .dims = std::string(row.dims),
                  .shape = shape_of(row.dims, config),
                  .matrix = row.kind == WeightKind::matrix,
                  .int8 = scale_of(config, row.name) != nullptr,
                  .scale = row.kind == WeightKind::scale};
  for (std::size_t d = 0; d < static_cast<std::size_t>(row.contracted); ++d)
    spec.fan_in *= spec.shape[d];
  return spec;
}

}  // namespace

std::string_view to_string(Section section) {
  static constexpr std::pair<std::string_view, Section> kWords[] = {
      {"norm", Section::norm},
      {"attention", Section::attention},
      {"FFN", Section::ffn},
      {"output", Section::output}};
  return word_in(kWords, section);
}

namespace {

bool is_of(const WeightRow& scale, std::string_view matrix) {
  return scale.kind == WeightKind::scale && !matrix.empty() &&
         std::find(scale.scaled.begin(), scale.scaled.end(), matrix) != scale.scaled.end();
}

}  // namespace

NumberFormat ValueRow::wire(const Numerics& numerics, const ModelConfig& config) const {
  if (integer) return NumberFormat::int32;
  if (cache && config.cache) return *config.cache;
  return stored ? numerics.act : NumberFormat::f32;
}

NumberFormat WeightRow::wire(const Numerics& numerics) const {
  if (kind != WeightKind::matrix) return NumberFormat::f32;
  return numerics.weights == NumberFormat::int8 && contracted == 0 ? NumberFormat::f32
                                                                   : numerics.weights;
}

const ValueRow* value_row(std::string_view name, const ModelRows* rows) {
  return rows != nullptr ? row_named(rows->values(), name) : row_named(all_values(), name);
}
const WeightRow* weight_row(std::string_view name, const ModelRows* rows) {
  return rows != nullptr ? row_named(rows->weights(), name) : row_named(all_weights(), name);
}

const ValueRow& statistic_row(std::string_view norm, std::string_view statistic) {
  for (const ValueRow& row : all_values())
    if (row.kind == ValueKind::stat && row.norm == norm && row.statistic == statistic) return row;
  throw std::logic_error(fmt::format("{} has no statistic {}", norm, statistic));
}

namespace {

bool has(const ModelConfig& config, const WeightRow& row, NumberFormat type) {
  return row.in_model(config) && (row.kind != WeightKind::scale || type == NumberFormat::int8);
}

}  // namespace

bool has_weight(const ModelConfig& config, std::string_view name, NumberFormat type) {
  const WeightRow* const row = weight_row(name, config.rows.get());
  if (row == nullptr || config.rows == nullptr) return row != nullptr && has(config, *row, type);
  return row->kind != WeightKind::scale || type == NumberFormat::int8;
}

const WeightRow* scale_of(const ModelConfig& config, std::string_view matrix) {
  for (const WeightRow* const row : scale_rows(config))
    if (is_of(*row, matrix)) return row;
  return nullptr;
}

std::vector<const WeightRow*> scale_rows(const ModelConfig& config) {
  const std::span<const WeightRow> all =
      config.rows != nullptr ? std::span(config.rows->weights()) : all_weights();
  std::vector<const WeightRow*> rows;
  for (const WeightRow& row : all)
    if (row.kind == WeightKind::scale && (config.rows != nullptr || row.in_model(config)))
      rows.push_back(&row);
  return rows;
}

std::vector<WeightSpec> weight_specs(const ModelConfig& config, NumberFormat type) {
  if (config.rows != nullptr) {
    std::vector<WeightSpec> specs = config.rows->weight_specs();
    if (type != NumberFormat::int8)
      std::erase_if(specs, [](const WeightSpec& spec) { return spec.scale; });
    return specs;
  }
  const std::span<const WeightRow> rows = all_weights();
  const auto of_layer = [](const WeightRow& row) { return row.per_layer; };
  const auto first = std::find_if(rows.begin(), rows.end(), of_layer);
  const auto after = std::find_if_not(first, rows.end(), of_layer);
  std::vector<WeightSpec> specs;
  const auto add = [&](auto begin, auto end, std::int64_t layer) {
    for (auto row = begin; row != end; ++row)
      if (has(config, *row, type)) specs.push_back(spec_of(*row, layer, config));
  };
  add(rows.begin(), first, -1);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) add(first, after, layer);
  add(after, rows.end(), -1);
  return specs;
}

std::string weight_id(std::int64_t layer, std::string_view name, const ModelRows* rows) {
  const WeightRow* const row = weight_row(name, rows);
  if (row != nullptr && !row->file.empty()) name = row->file;
  return row != nullptr && row->per_layer ? fmt::format("layer{}.{}", layer, name)
                                          : std::string(name);
}

std::vector<CheckpointSpec> checkpoint_specs(const ModelConfig& config) {
  std::vector<CheckpointSpec> specs;
  const std::span<const ValueRow> rows =
      config.rows != nullptr ? std::span(config.rows->values()) : all_values();
  for (const ValueRow& row : rows)
    if (row.kind == ValueKind::checkpoint && (config.rows != nullptr || row.in_model(config)))
      specs.push_back({std::string(row.name), std::string(row.dims), row.per_layer, row.integer});
  return specs;
}

Shape shape_of(std::string_view dims, const ModelConfig& config, const PassExtents& pass) {
  Shape shape;
  for (char letter : dims) shape.push_back(extent(letter, config, pass));
  return shape;
}

PassExtents extents_of(const PassPlan& pass, const ValueRow& value) {
  const std::int64_t slots = pass.cached + pass.L;
  return {pass.batch(), pass.L, value.cache ? slots : pass.prefix.length + slots, pass.prefix.rows,
          pass.prefix.length};
}

Tensor constant_tensor(const ModelConfig& config) {
  return Tensor(shape_of(value_row("ones")->dims, config), 1.0F);
}

std::string checkpoint_id(std::string_view pass, std::int64_t layer, std::string_view name,
                          const ModelRows* rows) {
  const ValueRow* const row = value_row(name, rows);
  std::string id(pass);
  if (layer >= 0 && (row == nullptr || row->per_layer)) id += ".layer" + std::to_string(layer);
  return (id += '.') += name;
}

}  // namespace shardproof
