#pragma once

#include <string>
#include <utility>

#include "engine/faults.h"
#include "engine/program/execute.h"

namespace shardproof {

/// In the layer programs of every pass that begins with `pass`, the step that makes `value` moves
/// nothing.
inline FaultHooks lost_transfer(std::string value, std::string pass = "") {
  FaultHooks faults;
  faults.plan = [value = std::move(value), pass = std::move(pass)](
                    const Scope& scope, const Program& program, const Op& op, Moves& plan) {
    if (program.name == "layer" && op.results[0].name == value && scope.pass.starts_with(pass))
      plan = without_transfer(std::move(plan));
  };
  return faults;
}

}  // namespace shardproof
