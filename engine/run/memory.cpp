#include "engine/run/memory.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weights/model/registry.h"
#include "weights/storage/weights.h"

namespace shardproof::cost {
namespace {

double count(const Shape& shape) {
  double n = 1.0;
  for (std::int64_t extent : shape) n *= static_cast<double>(extent);
  return n;
}

/// Bytes that the layer of one phase holds, over all chips.
struct LayerBytes {
  double placed = 0.0;  ///< weights and caches of all layers
  double live = 0.0;    ///< values of one layer that are live at once
  double scalar = 0.0;  ///< values of all layers as the scalar model holds them, unsharded
  double whole = 0.0;   ///< the largest value, unsharded
};

/// For each value that is a matrix of a contraction, by name: the columns of a chip's shard, whose
/// norms are kept with it in f64.
std::unordered_map<std::string_view, double> columns_of_matrices(const Program& layer,
                                                                 const ValueTypes& types,
                                                                 const Torus& torus) {
  std::unordered_map<std::string_view, double> columns;
  for (const Op& op : layer.ops)
    for (std::size_t t = 0; t < op.spec.terms.size(); ++t) {
      const EinsumSpec::Term& term = op.spec.terms[t];
      const std::string& name = op.args[2 * t + 1];
      const Type& type = types.at(name);
      const Shape local = local_shape(type.layout, type.shape, torus);
      double n = 1.0;
      for (std::size_t d = 0; d < local.size(); ++d)
        if (term.a.find(term.b[d]) == std::string::npos) n *= static_cast<double>(local[d]);
      columns[name] = std::max(columns[name], n);
    }
  return columns;
}

/// Shards of a value: of all chips, or one for each block where replicas share it.
double buffers_of(const Type& type, const Torus& torus, Replicas replicas) {
  if (replicas == Replicas::own) return static_cast<double>(torus.chips());
  double n = torus.size(type.layout.partial());
  for (const Layout::Dim& dim : type.layout.dims()) n *= torus.size(dim.axes);
  return n;
}
double elements_on_chips(const Type& type, const Torus& torus, Replicas replicas) {
  return buffers_of(type, torus, replicas) * count(local_shape(type.layout, type.shape, torus));
}

/// Bytes of a program's weights on the chips.
double bytes_of_weights(const Program& program, const ValueTypes& types, const Torus& torus,
                        Replicas replicas) {
  double bytes = 0.0;
  for (const ValueDecl& input : program.inputs)
    if (input.role.kind == Role::Kind::weight)
      bytes += 4.0 * elements_on_chips(types.at(input.name), torus, replicas);
  return bytes;
}

/// `placed_layers`: layers whose weights are on the chips at once.
LayerBytes layer_bytes(const PhasePrograms& programs, const ValueTypes& types,
                       const ModelConfig& model, Regime regime, Replicas replicas,
                       double placed_layers) {
  const Program& layer = programs.layer;
  const Torus& torus = programs.torus;
  const auto layers = static_cast<double>(model.layers);
  const auto of_chips = [&](const Type& type) { return elements_on_chips(type, torus, replicas); };
  std::unordered_map<std::string_view, double> columns;
  if (regime == Regime::exact) columns = columns_of_matrices(layer, types, torus);
  const auto norms = [&](const std::string& name) {
    const auto at = columns.find(name);
    return at == columns.end() ? 0.0
                               : 8.0 * at->second * buffers_of(types.at(name), torus, replicas);
  };
  // Bytes of a value in memory: f64 and an f32 bound while it is partial.
  const auto carried = [&](const Type& type) {
    return (type.layout.is_partial() ? 12.0 : 4.0) * of_chips(type);
  };
  LayerBytes bytes;
  for (const ValueDecl& input : layer.inputs)
    if (input.role.kind == Role::Kind::weight || input.role.kind == Role::Kind::previous ||
        input.role.kind == Role::Kind::prefix)
      bytes.placed += (input.role.kind == Role::Kind::weight ? placed_layers : layers) *
                      (4.0 * of_chips(types.at(input.name)) + norms(input.name));
  // For each op, the values that no later op reads.
  std::vector<std::vector<std::string_view>> ends(layer.ops.size());
  std::unordered_set<std::string_view> used;
  for (std::size_t i = layer.ops.size(); i-- > 0;)
    for (const std::string& arg : layer.ops[i].args)
      if (used.insert(arg).second) ends[i].push_back(arg);
  std::unordered_map<std::string_view, double> made;  // bytes of the ops' results
  double now = 0.0;
  for (std::size_t i = 0; i < layer.ops.size(); ++i) {
    for (const ValueDecl& r : layer.ops[i].results) {
      const Type& type = types.at(r.name);
      bytes.scalar +=
          4.0 * layers * count(type.shape) * static_cast<double>(torus.size(r.layout.partial()));
      bytes.whole = std::max(bytes.whole, 4.0 * count(type.shape));
      now += made[r.name] = carried(type) + norms(r.name);
    }
    bytes.live = std::max(bytes.live, now);
    for (const std::string_view name : ends[i])
      if (const auto at = made.find(name); at != made.end()) now -= at->second;
  }
  return bytes;
}

/// The oracle's checkpoints of all passes, counting each with the cache length of the last pass
/// (for passes over prefixes, the last of those). Rows of a text's model that have prefixes or are
/// of unequal length run alone, each over its own prefix, and their values are put together then.
double checkpoint_bytes(const RunPlan& plan) {
  const ModelConfig& m = plan.source_case.model;
  const SharedPrefix prefix = plan.passes.prefix();
  const bool alone = m.rows != nullptr && (!plan.passes.full() || prefix.given());
  double bytes = 0.0;
  for (const Passes::Group& group : plan.passes.groups()) {
    PassPlan pass = plan.passes.at(group.first);
    const double copies =
        !alone ? 1.0
        : pass.phase != Phase::prefix
            ? 2.0
            : 1.0 + static_cast<double>(plan.passes.batch()) / static_cast<double>(prefix.rows);
    const bool of_prefixes = pass.phase == Phase::prefix;
    pass.cached = (of_prefixes ? plan.passes.prefix().length : plan.passes.cached()) - pass.L;
    for (const CheckpointSpec& spec : checkpoint_specs(m)) {
      const double n =
          4.0 * copies * static_cast<double>(group.count()) *
          count(shape_of(spec.dims, m, extents_of(pass, *value_row(spec.name, m.rows.get()))));
      bytes += (spec.per_layer ? static_cast<double>(m.layers) : 1.0) * n;
    }
  }
  return bytes;
}

}  // namespace

double estimated_bytes(const RunPlan& plan, const PlanTypes& types, Replicas replicas,
                       Holding holding) {
  const Case& c = plan.source_case;
  const bool answered = holding == Holding::run_and_answer;
  double bytes = answered ? checkpoint_bytes(plan) : 0.0;
  const std::vector<WeightSpec> specs = weight_specs(c.model);
  double elements = 0.0, whole = 0.0;  // the largest array, as its trace has it
  for (const WeightSpec& spec : specs) {
    elements += count(spec.shape);
    whole = std::max(whole, 4.0 * count(spec.shape));
  }
  const bool on_demand = 4.0 * elements > static_cast<double>(Weights::kRoom);
  // A run has its weights as given, and if it stores others, these. With an answer both are counted
  // always, the oracle's own, and the vectors of its model (3 times as much).
  const bool as_given =
      c.numerics.weights == NumberFormat::f32 && c.model.softmax == Softmax::base_e;
  const double copies = answered ? 6.0 : as_given ? 1.0 : 2.0;
  bytes += copies * bytes_in_memory(specs);
  // A base-2 model is also reported against the plain model's answer.
  if (answered && c.model.softmax == Softmax::base2 && c.numerics.regime != Regime::field)
    bytes *= 2.0;
  std::map<Phase, double> placed;  // largest pass of each phase
  double live = 0.0, scalar = 0.0;
  for (const TypedPasses& passes : types.passes) {
    const LayerBytes of =
        layer_bytes(plan.programs(passes.phase), passes.last.layer, c.model, c.numerics.regime,
                    replicas, on_demand ? 1.0 : static_cast<double>(c.model.layers));
    const PhasePrograms& programs = plan.programs(passes.phase);
    double most = of.placed;
    // Weights on demand are placed for one program after another.
    if (on_demand)
      for (const auto& [program, of_program] :
           {std::pair{&programs.embed, &passes.last.embed}, {&programs.head, &passes.last.head}})
        most = std::max(most, bytes_of_weights(*program, *of_program, programs.torus, replicas));
    placed[passes.phase] = std::max(placed[passes.phase], most);
    live = std::max(live, of.live);
    scalar = std::max(scalar, of.scalar);
    whole = std::max(whole, of.whole);
  }
  for (const auto& [phase, most] : placed) bytes += most;
  if (c.numerics.regime == Regime::f32 && answered) live += scalar;
  if (holding == Holding::traced_run) bytes += whole;
  // A field element has three 8-byte words, a float four bytes.
  if (c.numerics.regime == Regime::field) return (bytes + live) * sizeof(FieldElement) / 4.0;
  return bytes + live;
}

}  // namespace shardproof::cost
