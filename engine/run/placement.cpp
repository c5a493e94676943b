#include "engine/run/placement.h"

#include "weights/registry.h"

namespace shardproof {
SharedValue PlacedWeights::get(const std::string& name, const Layout& layout, const Torus& torus) {
  SharedValue& value = placed_[name + " : " + layout.to_string() + " on " + torus.to_string()];
  if (value) return value;
  const ValueRow* const row = value_row(name);
  const bool constant = row != nullptr && row->kind == ValueKind::constant;
  const Tensor whole = constant ? constant_tensor(weights_.config()) : weights_.at(name);
  Sharded placed = shard(whole, layout, torus);
  if (faults_.weight) faults_.weight(name, placed);
  value = std::make_shared<Sharded>(std::move(placed));
  return value;
}

void PlacedWeights::supply(const Program& program, const Torus& torus, int layer,
                           std::map<std::string, SharedValue>& inputs) {
  for (const ValueDecl& input : program.inputs) {
    if (input.role.kind == Role::Kind::weight)
      inputs[input.name] = get(weight_id(layer, input.role.name), input.layout, torus);
    if (input.role.kind == Role::Kind::constant)
      inputs[input.name] = get(input.role.name, input.layout, torus);
  }
}

void PlacedWeights::place(const PhasePrograms& programs) {
  std::map<std::string, SharedValue> ignored;
  supply(programs.embed, programs.torus, 0, ignored);
  supply(programs.head, programs.torus, 0, ignored);
  for (int l = 0; l < static_cast<int>(weights_.config().layers); ++l)
    supply(programs.layer, programs.torus, l, ignored);
}

}  // namespace shardproof
