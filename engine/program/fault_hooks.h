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

/// Faults planted in a run, to show that what watches it sees them. The programs, and with them the
/// type check, stay as they are; each hook is told where it is. One that is empty costs nothing.
///
/// An exception that a hook itself throws is its author's: it ends the run, is no finding, and
/// reaches the caller of execute(), run_inference() or verify_case() as it was thrown, whatever was
/// found before. What a fault provokes afterwards, by the plan, the value or the weight that the
/// hook left, is what the run was to find: a difference, or an error of the engine, which is a
/// finding of the step that it ended.
struct FaultHooks {
  /// May change who receives what in a step that moves or reduces (a collective, slice, last),
  /// before it is carried out: e.g. by without_transfer (engine/collectives/faults.h).
  std::function<void(const Scope&, const Program&, const Op&, Moves& plan)> plan;
  /// May change which chips of one torus send what to those of another, of a cache that this
  /// program takes (engine/collectives/crossing.h).
  std::function<void(const Scope&, const Program&, const ValueDecl&, Moves& plan)> crossing;
  /// May change what one chip computed of a step's result, where it lies: the fault of one chip's
  /// executor. Called once for each chip that computed by itself; chips that share its result have
  /// the change, too (docs/spec.md section 3.2). `made` are the chip's numbers, of partial sums the
  /// values.
  std::function<void(const Scope&, const Program&, const Op&, const ValueDecl&, int chip,
                     std::span<std::byte> made)>
      computed;
  /// May change a step's result before anything sees it, for each chip by itself.
  std::function<void(const Scope&, const Program&, const Op&, const ValueDecl&, Sharded& value)>
      result;
  /// May change what lies on which chip of a weight ("layer0.wq", "embed") or of the constant
  /// "ones", when it is placed in one of its resident layouts.
  std::function<void(const std::string& name, Sharded& placed)> weight;
};

}  // namespace shardproof
