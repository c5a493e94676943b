#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "engine/collectives/moves.h"
#include "engine/program/program.h"
#include "engine/shards/sharded.h"

namespace shardproof {

struct Scope;

/// Faults injected into a run, to show that the checks detect them. Programs and their type check
/// are unchanged; each hook is told where it is called. An empty hook costs nothing.
///
/// An exception that a hook itself throws belongs to the hook's author: it ends the run, is not a
/// finding, and reaches the caller of execute(), run_inference() or verify_case() as thrown,
/// whatever was found before. Consequences of a fault, through the plan, value or weight that the
/// hook left, are for the run to find: a difference, or an error of the engine, which is a finding
/// of the step that it ended.
struct FaultHooks {
  /// May change who receives what in a step that moves or reduces (a collective, slice, last),
  /// before it is executed: e.g. by without_transfer (engine/collectives/faults.h).
  std::function<void(const Scope&, const Program&, const Op&, Moves& plan)> plan;
  /// May change which chips of one torus send what to those of another, for a cache that this
  /// program takes (engine/collectives/crossing.h).
  std::function<void(const Scope&, const Program&, const ValueDecl&, Moves& plan)> crossing;
  /// May change in place what one chip computed of a step's result: the fault of one chip's
  /// executor. Called once for each chip that computed by itself; chips that share its result share
  /// the change (docs/spec.md section 3.2). `made` is the chip's buffer; for partial sums, their
  /// values.
  std::function<void(const Scope&, const Program&, const Op&, const ValueDecl&, int chip,
                     std::span<std::byte> made)>
      computed;
  /// May change a step's result before anything reads it, for each chip separately.
  std::function<void(const Scope&, const Program&, const Op&, const ValueDecl&, Sharded& value)>
      result;
  /// May change the shards of a weight ("layer0.wq", "embed") or of the constant "ones" when it is
  /// placed in one of its resident layouts.
  std::function<void(const std::string& name, Sharded& placed)> weight;
};

}  // namespace shardproof
