#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/layouts/around.h"
#include "engine/program/execute.h"
#include "engine/program/fault_hooks.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Resident weights on the chips, by name, layout and torus: placed once for all phases that agree,
/// or, if the model's weights are read on demand, for each program that takes them.
class PlacedWeights {
 public:
  /// `weights` are as stored_as() returns them for `type`; `placed` is the model as chips hold it.
  /// They and `faults` must outlive this object. `replicas`: whether chips with the same block of a
  /// weight share one buffer. With weights=int8, if `weights` are not int8 yet, the chips quantize
  /// their own shards. With a field, every weight is a stream of field inputs, whatever `weights`
  /// hold (docs/field.md section 1.2).
  PlacedWeights(const Weights& weights, const ModelConfig& placed, NumberFormat type,
                const FaultHooks& faults, std::shared_ptr<const Field> field = nullptr,
                Replicas replicas = Replicas::shared)
      : weights_(weights),
        model_(placed),
        type_(type),
        quantizes_(type == NumberFormat::int8 && weights.stored_type() != NumberFormat::int8),
        faults_(faults),
        field_(std::move(field)),
        replicas_(replicas) {}

  bool on_demand() const { return weights_.on_demand(); }

  /// Places all weights that a phase's programs take, unless they are placed on demand. Throws what
  /// supply() throws.
  void place(const PhasePrograms& programs);

  /// Adds to `inputs`, by input name, the weights and constants that a program on this torus takes
  /// for layer `layer`. Throws Error("weights_name", ...) if there is no such weight.
  void supply(const Program& program, const Torus& torus, int layer,
              std::map<std::string, SharedValue>& inputs);

 private:
  /// The request: a program, its torus, a layer.
  struct Place {
    const Program& program;
    const Torus& torus;
    int layer;
  };

  SharedValue get(const std::string& name, const Place& place, const Layout& layout);
  Sharded make(const std::string& name, const Place& place, const Layout& layout);
  Sharded made_of_field(const std::string& name, const Place& place, const Layout& layout);
  const Tensor& scale(const WeightRow& row, const Place& place);

  /// Shards a weight of the model, with its padding.
  Sharded shards_of(std::string_view name, const Place& place, const Layout& layout) const;

  const Weights& weights_;
  const ModelConfig& model_;  // the placed model
  NumberFormat type_;
  bool quantizes_;
  const FaultHooks& faults_;
  std::shared_ptr<const Field> field_;  // null in other regimes
  Replicas replicas_;
  std::map<std::string, SharedValue> placed_;
  std::map<std::string, Tensor> scales_;  // by name, torus and the layouts of the matrices
};

}  // namespace shardproof
