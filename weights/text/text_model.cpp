#include "weights/text/text_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "weights/text/flat.h"
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
    : text_(text), flat_(flat_text(text)), sizes_(sizes_of(text, keys)) {
  line_ = std::move(line);
  extents_ = sizes_.extents;
  std::set<std::string, std::less<>> matrices, names, stored;
  const auto once = [&](const std::string& name, int at) {
    if (!names.insert(name).second)
      throw Error("model_c17", fmt::format("{}{} is defined in two sections; a model that runs has "
                                           "one value or weight of each name",
                                           text_.where(at), name));
  };
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
      once(weight.name, weight.line);
      const std::string& file = weight.from.empty() ? weight.name : weight.from;
      const bool of_layer = section == TextSection::layer;
      WeightRow row{.name = own(weight.name), .dims = own(weight.letters), .per_layer = of_layer};
      row.file = own(file);
      for (const TextWeightSpec& spec : specs)
        if (spec.id == file || (of_layer && spec.id.ends_with("." + file)))
          row.kind = kind_of(spec.kind);
      if (row.kind == WeightKind::matrix) matrices.insert(weight.name);
      weights_.push_back(row);
    }
  }
  for (const TextSection section : kTextSections) {
    std::set<std::string, std::less<>> own_lines;
    const bool of_layer = section == TextSection::layer;
    for (const TextLine& flat : flat_.section(section).lines) {
      if (!own_lines.insert(flat.name).second) continue;
      once(flat.name, flat.line);
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
    for (const TextWeight& weight : text_.section(section).weights)
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
