#pragma once

#include <map>
#include <memory>
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
  std::string pass;                 ///< "prefill.c0", "decode.1"
  std::string previous;             ///< the preceding pass; empty in the first
  int layer = 0;                    ///< layer of a layer program; the last layer for the head
  const ModelRows* rows = nullptr;  ///< of a text's model; null: of one of keys

  /// The stable name of a step: "decode.1.layer0.gate" for value `gate` of a layer program.
  std::string step(const Program& program, const std::string& value) const;
};

/// Observes every value as it is computed, before anything uses it.
class Observer {
 public:
  virtual ~Observer() = default;
  /// `op` is null for a program's input.
  virtual void observe(const Scope& scope, const Program& program, const Op* op,
                       const ValueDecl& declared, const Sharded& value) = 0;
  /// Returns true if the observer reads the elements of partial sums. Only if it does not may the
  /// one reduction that reads them compute them, tile by tile (Partial::lazy).
  virtual bool reads_partials() const { return true; }
  /// Elements that crossed between chips in a collective, over all chips.
  virtual void moved(const Scope&, const Program&, const Op&, std::int64_t) {}
  /// Elements of a program's input that all chips of one torus pulled from those of another.
  virtual void crossed(const Scope&, const Program&, const ValueDecl&, std::int64_t) {}
};

struct Execution {
  const ModelConfig& config;
  Threads& threads;
  Observer* observer = nullptr;
  Scope scope = {};
  Numerics numerics{};  ///< how sums are computed; storage is the program's own
  Hazards hazards{};
  /// The caller no longer needs its activations (inputs that are not weights, constants, ids,
  /// positions or prefix caches): with hazards.poison they are poisoned after their last use, too.
  bool donate_inputs = false;
  const FaultHooks* faults = nullptr;  ///< all hooks but `weight`
  /// Receives findings and decides when the run ends. Null: a finding is thrown as an Error.
  Findings* findings = nullptr;
  /// Rows of the pass: `last` takes their last tokens, `append` and `attend` leave out their
  /// padding. If empty, every row has L tokens.
  std::vector<PassRows> rows = {};
  /// The result of check() for this program and inputs of these shapes, for a program that is
  /// checked once and run often. If null, each step infers its types from its operands. A value
  /// that does not fit its type here is "sharded_c1".
  const std::map<std::string, Type>* types = nullptr;
  /// The model with its dims as chips hold them, where they are longer than those of `config`
  /// (docs/spec.md section 6.7); otherwise null.
  const ModelConfig* placed = nullptr;
  Draws draws = {};  ///< in a pass that samples: how it draws, and by which random numbers
  /// Positions of the rows' prefixes in the pass, which are in caches of their own. `append` writes
  /// what follows the prefixes from slot 0 on.
  std::int64_t prefix = 0;
  /// Liveness of this program, for one that is run often; if null, it is computed.
  const Liveness* liveness = nullptr;
  /// Memo of this program, for sequential runs; if null, each run starts without one.
  ProgramMemo* memo = nullptr;
  /// In the field regime its arithmetic, for values that are made of positions alone.
  std::shared_ptr<const Field> field = nullptr;
};

/// Runs a program on shard buffers: an op is a map over chips, a collective a pure function of the
/// shards. Takes its inputs by name; a value is freed after its last use, operands of partial sums
/// when those are complete. Returns the outputs by name, or none if the findings ended the run.
/// Does not check types: check() does. A value has the layout and shape that its op yields,
/// whatever is declared.
///
/// Reports findings, or without `findings` throws Errors. Detector types: "engine_types" (no result
/// types follow from an op's operands; the broken typing rule is named), "sharded_c1" (a fault hook
/// made a value that does not fit). Detector run: "engine_finite" (a value overflowed: step, chip
/// and element are named), "field_number" (a field element is not a number), what the ops throw
/// (engine/ops/local_ops.h), "transfer_c1", "transfer_c2" (a fault hook made a plan that cannot be
/// executed) and any other exception of the engine but std::bad_alloc, which is thrown. Detector
/// replicas, with hazards.replicas: "hazard_replicas". Throws what require_ieee, the observer and
/// the fault hooks throw (engine/program/fault_hooks.h).
std::map<std::string, SharedValue> execute(const Program& program,
                                           std::map<std::string, SharedValue> inputs,
                                           const Execution& execution);

}  // namespace shardproof
