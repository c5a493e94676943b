#include "engine/run/placement.h"

#include "engine/ops/quantize.h"
#include "engine/run/dim_padding.h"
#include "weights/model/registry.h"
#include "weights/text/text_model.h"
#include "weights/text/text_weights.h"

namespace shardproof {
namespace {

/// The layout in which a program takes a weight; unsharded if it takes none.
Layout resident_layout(const Program& program, const WeightRow& row) {
  for (const ValueDecl& input : program.inputs)
    if (input.role.kind == Role::Kind::weight && input.role.name == row.name) return input.layout;
  return Layout::parse(row.dims);
}

}  // namespace

Sharded PlacedWeights::shards_of(std::string_view name, const Place& place,
                                 const Layout& layout) const {
  const ModelRows* const rows = model_.rows.get();
  const std::shared_ptr<const Tensor> weight = weights_.at(weight_id(place.layer, name, rows));
  const Tensor& tensor = *weight;
  const WeightRow* const row = weight_row(name, rows);
  if (row == nullptr || tensor.shape == shape_of(row->dims, model_))
    return shard(tensor, layout, place.torus, replicas_);
  return shard(padded(tensor, shape_of(row->dims, model_), padding_of(row->kind)), layout,
               place.torus, replicas_);
}

/// The scale of each output channel, from the chips' shards of its matrices.
const Tensor& PlacedWeights::scale(const WeightRow& row, const Place& place) {
  const ModelRows* const rows = model_.rows.get();
  std::string key = weight_id(place.layer, row.name, rows) + " on " + place.torus.to_string();
  for (std::string_view name : row.scaled)
    if (!name.empty())
      key += " " + resident_layout(place.program, *weight_row(name, rows)).to_string();
  if (const auto at = scales_.find(key); at != scales_.end()) return at->second;
  const auto absmax_of = [&](std::string_view name) {
    const Layout layout = resident_layout(place.program, *weight_row(name, rows));
    return absmax(shards_of(name, place, layout), row.dims);
  };
  Sharded most = absmax_of(row.scaled[0]);
  if (!row.scaled[1].empty()) {
    const Sharded other = absmax_of(row.scaled[1]);
    most = greater(shard(assemble(most), other.layout(), place.torus), other);
  }
  return scales_.emplace(key, assemble(scale_of_absmax(most))).first->second;
}

Sharded PlacedWeights::made_of_field(const std::string& name, const Place& place,
                                     const Layout& layout) {
  const ValueRow* const value = value_row(name, model_.rows.get());
  if (value != nullptr && value->kind == ValueKind::constant) {
    Array<FieldElement> ones(constant_tensor(weights_.config()).shape, field_->integer(1));
    return shard(ones, layout, place.torus, field_, replicas_);
  }
  const ModelRows* const rows = model_.rows.get();
  const std::string id = weight_id(place.layer, name, rows);
  for (const WeightSpec& spec : weight_specs(weights_.config(), type_)) {
    if (spec.name != id) continue;
    Array<FieldElement> tensor(spec.shape);
    const TextModel* const of_text = text_model(model_);
    const TextWeight* const text = of_text != nullptr ? of_text->weight(name) : nullptr;
    const bool pairs = text != nullptr && is_rope_table(text->kind);
    if (pairs) tensor = Array<FieldElement>(shape_of_pairs(*text, of_text->sizes()));
    const FieldFunction stream("weight " + id);
    for (std::size_t i = 0; i < tensor.data.size(); ++i) tensor.data[i] = field_->input(stream, i);
    if (pairs)
      tensor = table_of_pairs(*text, tensor, spec.shape,
                              field_->integer(text->kind == TextWeightKind::cosines ? 1 : 0));
    const WeightRow& row = *weight_row(name, rows);
    const FieldElement rest = field_->integer(static_cast<std::int64_t>(padding_of(row.kind)));
    return shard(padded(tensor, shape_of(row.dims, model_), rest), layout, place.torus, field_,
                 replicas_);
  }
  return shard(*weights_.at(id), layout, place.torus);  // throws
}

Sharded PlacedWeights::make(const std::string& name, const Place& place, const Layout& layout) {
  const ValueRow* const value = value_row(name, model_.rows.get());
  if (value != nullptr && value->kind == ValueKind::constant)
    return shard(constant_tensor(weights_.config()), layout, place.torus, replicas_);
  const WeightRow* const row = weight_row(name, model_.rows.get());
  const WeightRow* const of = scale_of(weights_.config(), name);
  if (quantizes_ && row != nullptr && row->kind == WeightKind::scale)
    return shard(scale(*row, place), layout, place.torus, replicas_);
  Sharded placed = shards_of(name, place, layout);
  if (!quantizes_ || of == nullptr) return placed;
  std::vector<Layout::Dim> channels;
  for (const char letter : of->dims) channels.push_back({letter, layout.axes(letter)});
  return codes(placed, shard(scale(*of, place), Layout(channels, {}), place.torus, replicas_));
}

SharedValue PlacedWeights::get(const std::string& name, const Place& place, const Layout& layout) {
  const std::string id = weight_id(place.layer, name, model_.rows.get());
  SharedValue of_one_run;
  SharedValue& value =
      weights_.on_demand()
          ? of_one_run
          : placed_[id + " : " + layout.to_string() + " on " + place.torus.to_string()];
  if (value) return value;
  Sharded placed =
      field_ == nullptr ? make(name, place, layout) : made_of_field(name, place, layout);
  if (faults_.weight) faults_.weight(id, placed);
  value = std::make_shared<Sharded>(std::move(placed));
  return value;
}

void PlacedWeights::supply(const Program& program, const Torus& torus, int layer,
                           std::map<std::string, SharedValue>& inputs) {
  for (const ValueDecl& input : program.inputs)
    if (input.role.kind == Role::Kind::weight || input.role.kind == Role::Kind::constant)
      inputs[input.name] = get(input.role.name, {program, torus, layer}, input.layout);
}

void PlacedWeights::place(const PhasePrograms& programs) {
  if (weights_.on_demand()) return;
  std::map<std::string, SharedValue> ignored;
  supply(programs.embed, programs.torus, 0, ignored);
  supply(programs.head, programs.torus, 0, ignored);
  for (int l = 0; l < static_cast<int>(weights_.config().layers); ++l)
    supply(programs.layer_program(l), programs.torus, l, ignored);
}

}  // namespace shardproof
