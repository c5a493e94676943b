#include "weights/text/text_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "weights/base/detail/word_table.h"
#include "weights/text/flat.h"
#include "weights/text/scales.h"
#include "weights/text/text_weights.h"

namespace shardproof {
namespace {

WeightKind kind_of(TextWeightKind kind) {
  switch (kind) {
    case TextWeightKind::matrix:
    case TextWeightKind::table:
      return WeightKind::matrix;
    case TextWeightKind::gain:
      return WeightKind::gain;
    case TextWeightKind::cosines:
    case TextWeightKind::sines:
      return WeightKind::rope_table;
    case TextWeightKind::slopes:
      return WeightKind::slopes;
    default:
      return WeightKind::bias;
  }
}

/// Returns whether a row of the registry is one that every model has: inputs of a pass, the stream,
/// and the values of sampling.
bool of_every_model(const ValueRow& row) {
  return row.kind == ValueKind::input || row.kind == ValueKind::layer_input || row.per_block ||
         row.drawing || row.name == "token";
}

/// Returns whether a line is a contraction with a matrix, whose sums have the types acc and wire.
bool reads_matrix(const Expression& e, const std::set<std::string, std::less<>>& matrices) {
  return e.kind == Expression::Kind::call && e.op == ModelOp::einsum &&
         std::any_of(e.args.begin(), e.args.end(),
                     [&](const Expression& arg) { return matrices.contains(arg.text); });
}

}  // namespace

TextModel::TextModel(const ModelText& text, const TextKeys& keys, std::string line)
    : TextModel(text, sizes_of(text, keys), std::move(line), NumberFormat::f32) {}

TextModel::TextModel(const ModelText& text, TextSizes sizes, std::string line, NumberFormat weights)
    : text_(text),
      flat_(flat_text(text)),
      sizes_(std::move(sizes)),
      int8_(weights == NumberFormat::int8) {
  line_ = std::move(line);
  extents_ = sizes_.extents;
  add_weights();
  add_scales();
  add_values();
  std::set<std::string, std::less<>> names;
  const auto once = [&](const std::string& name, int at) {
    if (!names.insert(name).second)
      throw Error("model_c17", fmt::format("{}{} is defined in two sections; a model that runs has "
                                           "one value or weight of each name",
                                           text_.where(at), name));
  };
  for (const bool of_weights : {true, false})
    for (const TextSection section : kTextSections) {
      std::map<std::string, int> own;  // under the other guard once more
      const auto& all = flat_.section(section);
      if (of_weights)
        for (const TextWeight& weight : all.weights) own.emplace(weight.name, weight.line);
      else
        for (const TextLine& one : all.lines) own.emplace(one.name, one.line);
      for (const auto& [name, at] : own) once(name, at);
    }
}

void TextModel::add_weights() {
  const std::vector<TextWeightSpec> specs = text_weight_specs(text_, sizes_);
  for (const TextWeightSpec& spec : specs) {
    Shape shape;
    for (const char letter : spec.letters) shape.push_back(extent(letter));
    specs_.push_back({.name = spec.id,
                      .dims = spec.letters,
                      .shape = std::move(shape),
                      .fan_in = spec.fan_in,
                      .matrix = kind_of(spec.kind) == WeightKind::matrix});
  }
  for (const TextSection section : kTextSections) {
    std::set<std::string, std::less<>> own_weights;
    for (const TextWeight& weight : text_.section(section).weights) {
      if (!own_weights.insert(weight.name).second) continue;  // under the other guard
      const std::string& file = weight.from.empty() ? weight.name : weight.from;
      const bool of_layer = section == TextSection::layer;
      WeightRow row{.name = own(weight.name), .dims = own(weight.letters), .per_layer = of_layer};
      row.file = own(file);
      for (const TextWeightSpec& spec : specs)
        if (spec.id == file || (of_layer && spec.id.ends_with("." + file)))
          row.kind = kind_of(spec.kind);
      weights_.push_back(row);
    }
  }
}

/// Adds the scales of weights=int8, and to its matrices how many letters their sums contract.
void TextModel::add_scales() {
  std::set<std::string> matrices;
  for (const WeightRow& row : weights_)
    if (row.per_layer && row.kind == WeightKind::matrix) matrices.emplace(row.name);
  const std::vector<TextScale> scales = text_scales(flat_, matrices);
  for (const TextScale& scale : scales) {
    WeightRow row{.name = own(scale.name), .dims = own(scale.channels), .kind = WeightKind::scale};
    row.file = own(scale.file);
    for (std::size_t i = 0; i < scale.matrices.size(); ++i) {
      const auto matrix = std::find_if(weights_.begin(), weights_.end(), [&](const WeightRow& one) {
        return one.name == scale.matrices[i];
      });
      row.scaled.at(i) = matrix->name;
      matrix->contracted = static_cast<int>(matrix->dims.size() - row.dims.size());
      for (WeightSpec& spec : specs_)
        if (spec.name.starts_with("layer") &&
            std::string_view(spec.name).substr(spec.name.find('.') + 1) == matrix->file)
          spec.int8 = true;
    }
    const WeightRow& first = *row_named(weights_, row.scaled[0]);
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
      const std::string id = fmt::format("layer{}.{}", layer, first.file);
      if (std::none_of(specs_.begin(), specs_.end(),
                       [&](const WeightSpec& spec) { return spec.name == id; }))
        continue;  // of the layers of a flag
      WeightSpec spec{.name = fmt::format("layer{}.{}", layer, row.file),
                      .dims = std::string(row.dims),
                      .shape = {},
                      .scale = true};
      for (const char letter : row.dims) spec.shape.push_back(extent(letter));
      specs_.push_back(std::move(spec));
    }
    weights_.push_back(row);
  }
  if (int8_) flat_ = scaled_text(std::move(flat_), scales);
}

void TextModel::add_values() {
  std::set<std::string, std::less<>> matrices, stored;
  for (const WeightRow& row : weights_)
    if (row.kind == WeightKind::matrix) matrices.emplace(row.name);
  for (const TextSection section : kTextSections) {
    std::set<std::string, std::less<>> own_lines;
    const bool of_layer = section == TextSection::layer;
    const auto exists = [&](const TextLine& line) {
      for (std::int64_t layer = 0; layer < sizes_.layers; ++layer)
        if (sizes_.has(line.guard, layer)) return true;
      return false;
    };
    const std::vector<TextLine>& lines = flat_.section(section).lines;
    for (const TextLine& flat : lines) {
      // Of two lines of a name the row is that of one which some layer has.
      if (of_layer && !exists(flat) &&
          std::any_of(lines.begin(), lines.end(),
                      [&](const auto& line) { return line.name == flat.name && exists(line); }))
        continue;
      if (!own_lines.insert(flat.name).second) continue;
      const Expression& e = flat.expression;
      const auto is = [&](ModelOp op) { return e.kind == Expression::Kind::call && e.op == op; };
      // A store, or what only moves such values.
      const bool moves = is(ModelOp::append) || is(ModelOp::turn) ||
                         (e.kind == Expression::Kind::call && row_of(e.op).form == ModelForm::view);
      if (is(ModelOp::store) || (moves && stored.contains(e.args[0].text)))
        stored.insert(flat.name);
      ValueRow row{.name = own(flat.name),
                   .dims = own(flat.letters),
                   .per_layer = of_layer,
                   .stored = stored.contains(flat.name),
                   .contraction = is(ModelOp::einsum),
                   .acc = of_layer && reads_matrix(e, matrices),
                   .wire_rounds = (of_layer && reads_matrix(e, matrices)) ||
                                  (section == TextSection::embedding && is(ModelOp::gather)),
                   .cache = is(ModelOp::append),
                   .program_input = true,
                   .of_layer_input = section == TextSection::embedding || is(ModelOp::append)};
      values_.push_back(row);
    }
  }
  for (const ValueRow& row : all_values())
    if (of_every_model(row)) values_.push_back(row);
  values_.push_back({.name = "slot",
                     .dims = "M",
                     .kind = ValueKind::input,
                     .per_layer = false,
                     .program_input = true,
                     .integer = true});
}

std::int64_t TextModel::line_of(std::string_view name, std::int64_t layer) const {
  std::int64_t place = 0;
  for (const TextSection section : kTextSections)
    for (const TextLine& line : flat_.section(section).lines) {
      if (line.name == name && (section != TextSection::layer || sizes_.has(line.guard, layer)))
        return place;
      ++place;
    }
  return -1;
}

const TextWeight* TextModel::weight(std::string_view name) const {
  for (const TextSection section : kTextSections)
    for (const TextWeight& weight : flat_.section(section).weights)
      if (weight.name == name) return &weight;
  return nullptr;
}

const TextWeight* TextModel::weight_of_file(std::string_view name) const {
  for (const TextSection section : {TextSection::embedding, TextSection::head})
    for (const TextWeight& weight : text_.section(section).weights)
      if ((weight.from.empty() ? weight.name : weight.from) == name) return &weight;
  return nullptr;
}

ModelConfig model_config(std::shared_ptr<const TextModel> model) {
  ModelConfig config;
  config.preset = model->text().name;
  config.layers = model->sizes().layers;
  const auto extent = [&](char letter) { return std::max<std::int64_t>(model->extent(letter), 1); };
  config.E = extent('E'), config.F = extent('F'), config.H = extent('H'), config.K = extent('K');
  config.Q = extent('Q'), config.V = extent('V');
  config.rope = Rope::none;
  if (model->extent('P') > 0) config.positions = model->extent('P');
  config.rows = std::move(model);
  return config;
}

ModelConfig model_with_weights(ModelConfig config, NumberFormat type) {
  const TextModel* const of_text = text_model(config);
  if (of_text != nullptr && of_text->int8() != (type == NumberFormat::int8))
    config.rows =
        std::make_shared<const TextModel>(of_text->text(), of_text->sizes(), of_text->line(), type);
  return config;
}

const TextModel* text_model(const ModelConfig& config) {
  return static_cast<const TextModel*>(config.rows.get());
}

bool same_model(const ModelConfig& a, const ModelConfig& b) {
  const TextModel *const of_a = text_model(a), *const of_b = text_model(b);
  if (of_a == nullptr || of_b == nullptr) return a == b;
  return print_model_text(of_a->text()) == print_model_text(of_b->text()) &&
         of_a->sizes() == of_b->sizes();
}

}  // namespace shardproof
