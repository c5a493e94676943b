#pragma once

#include <functional>
#include <string>

#include "engine/moves.h"
#include "engine/program/program.h"
#include "engine/sharded.h"

namespace shardproof {

struct Scope;

/// Faults planted in a run, to show that what watches it sees them. The programs, and with them the
/// type check, stay as they are; each hook is told where it is. One that is empty costs nothing.
struct FaultHooks {
  /// May change who receives what in a step that moves or reduces (a collective, slice, last),
  /// before it is carried out: e.g. by without_transfer (engine/faults.h).
  std::function<void(const Scope&, const Program&, const Op&, Moves& plan)> plan;
  /// May change a step's result before anything sees it.
  std::function<void(const Scope&, const Program&, const Op&, const ValueDecl&, Sharded& value)>
      result;
  /// May change what lies on which chip of a weight ("layer0.wq", "embed") or of the constant
  /// "ones", when it is placed in one of its resident layouts.
  std::function<void(const std::string& name, Sharded& placed)> weight;
};

}  // namespace shardproof
