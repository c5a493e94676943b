#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "engine/program/program.h"

namespace shardproof {

/// Until when each value of a program is needed: the index of the last op that reads it, ops.size()
/// for outputs. Operands of a contraction or lookup with a partial result count as read until every
/// partial that descends from it is complete, because the rounding of a sum may ask for its exact
/// terms (docs/spec.md section 4). A value that nothing reads is needed until the op that defines
/// it.
std::map<std::string, std::size_t> needed_until(const Program& program);

/// What a run of a program asks of its text alone, by name: of a program that runs often, once.
struct Liveness {
  explicit Liveness(const Program& program);

  /// The index of the last op that reads a value, ops.size() for outputs; none of what nothing
  /// reads.
  std::map<std::string, std::size_t> last_use;
  std::map<std::string, std::size_t> needed;  ///< needed_until()
};

}  // namespace shardproof
