#pragma once

#include <map>
#include <string>

#include "engine/layouts/around.h"
#include "engine/program/execute.h"
#include "engine/program/fault_hooks.h"
#include "weights/error.h"
#include "weights/weights.h"

namespace shardproof {

/// Resident weights on the chips, by name, layout and torus: placed once for all phases that agree.
class PlacedWeights {
 public:
  /// `weights` as stored for the run; they and `faults` outlive this.
  PlacedWeights(const Weights& weights, const FaultHooks& faults)
      : weights_(weights), faults_(faults) {}

  /// Places all that a phase's programs ask for. Throws what supply() throws.
  void place(const PhasePrograms& programs);

  /// The weights and constants that a program on this torus declares among its inputs, for layer
  /// `layer`, by the inputs' names. Throws Error("weights_name", ...) if there is no such weight.
  void supply(const Program& program, const Torus& torus, int layer,
              std::map<std::string, SharedValue>& inputs);

 private:
  SharedValue get(const std::string& name, const Layout& layout, const Torus& torus);

  const Weights& weights_;
  const FaultHooks& faults_;
  std::map<std::string, SharedValue> placed_;
};

}  // namespace shardproof
