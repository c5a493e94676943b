#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/numeric/threads.h"
#include "engine/ops/einsum.h"
#include "engine/program/fault_hooks.h"
#include "engine/program/liveness.h"
#include "engine/program/program.h"
#include "engine/shards/finding.h"
#include "engine/shards/hazards.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"
#include "weights/model/sampling.h"

namespace shardproof {

struct ProgramMemo;

/// The place of a program in a run.
struct Scope {
  std::string pass;      ///< "prefill.c0", "decode.1"
  std::string previous;  ///< the pass before; empty in the first
  int layer = 0;         ///< of a layer program; the last layer for the head

  /// The stable name of a step: "decode.1.layer0.gate" for value `gate` of a layer program.
  std::string step(const Program& program, const std::string& value) const;
};

/// Sees every value as it is computed, before anything uses it.
class Observer {
 public:
  virtual ~Observer() = default;
  /// `op` is null for a program's input.
  virtual void observe(const Scope& scope, const Program& program, const Op* op,
                       const ValueDecl& declared, const Sharded& value) = 0;
  /// Whether it looks at the elements of partial sums. Only where nobody does may the one reduction
  /// that reads them make them, tile by tile (Partial::unmade).
  virtual bool reads_partials() const { return true; }
  /// Elements that crossed between chips in a collective, over all chips.
  virtual void moved(const Scope&, const Program&, const Op&, std::int64_t) {}
  /// Elements that all chips of one torus pulled from those of another, of an input of a program.
  virtual void crossed(const Scope&, const Program&, const ValueDecl&, std::int64_t) {}
};

struct Execution {
  const ModelConfig& config;
  Threads& threads;
  Observer* observer = nullptr;
  Scope scope = {};
  Numerics numerics{};  ///< how sums are made; storage is the program's own
  Hazards hazards{};
  /// The caller needs its activations (inputs that are neither weights, constants, ids, positions
  /// nor caches of prefixes) no more: with hazards.poison they are poisoned after their last use,
  /// too.
  bool donate_inputs = false;
  const FaultHooks* faults = nullptr;  ///< all but that of `weight`
  /// Where what is found goes; the run ends when they say so. Null: it is thrown as an Error.
  Findings* findings = nullptr;
  /// Of the pass: `last` takes their last tokens, `append` and `attend` leave out their padding.
  /// Without them every row has L tokens.
  std::vector<PassRows> rows = {};
  /// What check() returned for this program and inputs of these shapes: for a program that is
  /// checked once and run often. Without it each step infers its types from its operands. Of a
  /// value that does not fit its type here "sharded_c1" is thrown.
  const std::map<std::string, Type>* types = nullptr;
  /// The model with its dims as chips hold them, where they are longer than those of `config`
  /// (docs/spec.md section 6.7); null where they are not.
  const ModelConfig* placed = nullptr;
  Draws draws = {};  ///< of a pass that samples: how, and by which random numbers
  /// Of the pass: positions of its rows' prefixes, which lie in caches of their own. `append`
  /// writes what follows them from slot 0 on.
  std::int64_t prefix = 0;
  /// That of this very program, for one that is run often; null: it is worked out.
  const Liveness* liveness = nullptr;
  /// The same, of one run after the other; null: each run begins anew.
  ProgramMemo* memo = nullptr;
};

/// Runs a program on shard buffers: an op is a map over chips, a collective a pure function of the
/// shards. Takes its inputs by name; a value is freed after its last use, operands of partial sums
/// when those are complete. Returns the outputs by name, none where the findings ended the run.
/// Does not check types: check() does. A value has the layout and shape that its op yields,
/// whatever is declared.
///
/// Findings, or without them Errors: of types "engine_types" (an op yields nothing of its operands;
/// the broken typing rule is named), "sharded_c1" (a fault hook made a value that does not fit); of
/// the run "engine_finite" (a value overflowed: step, chip and element are named), what the ops
/// throw (engine/ops/local_ops.h), "transfer_c1", "transfer_c2" (a fault hook made a plan that
/// cannot be carried out) and any exception of the engine's own; with hazards.replicas of replicas
/// "hazard_replicas". Throws what require_ieee, the observer and the fault hooks
/// throw (engine/program/fault_hooks.h).
std::map<std::string, SharedValue> execute(const Program& program,
                                           std::map<std::string, SharedValue> inputs,
                                           const Execution& execution);

}  // namespace shardproof
