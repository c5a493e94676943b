#pragma once

#include <string>
#include <utility>

#include "engine/collectives/faults.h"
#include "engine/program/execute.h"

namespace shardproof {

/// The step of `program` that makes `value` moves nothing, in every pass that begins with `pass`.
struct LostTransfer {
  std::string value;
  std::string pass = "";
  std::string program = "layer";

  void operator()(const Scope& scope, const Program& now, const Op& op, Moves& plan) const {
    if (now.name == program && op.results[0].name == value && scope.pass.starts_with(pass))
      plan = without_transfer(std::move(plan));
  }
};

inline FaultHooks lost_transfer(std::string value, std::string pass = "",
                                std::string program = "layer") {
  FaultHooks faults;
  faults.plan = LostTransfer{
      .value = std::move(value), .pass = std::move(pass), .program = std::move(program)};
  return faults;
}

/// A fault in every layer: the norm statistics stay local to the chip's shard of E.
inline FaultHooks local_statistics() { return lost_transfer("sa"); }

/// A plan that cannot be carried out.
inline void keep_pieces_of_other_chips(Moves& plan) { plan.pieces[0][0].from_chip = 99; }

}  // namespace shardproof
