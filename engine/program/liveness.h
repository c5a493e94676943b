#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "engine/program/program.h"

namespace shardproof {

/// How long each value of a program is needed: the index of the last op that reads it, ops.size()
/// for outputs. Operands of a contraction or lookup with a partial result count as read until every
/// partial sum that descends from it is complete, because rounding a sum may need its exact terms
/// (docs/spec.md section 4). A result that nothing reads is needed until the op that defines it.
std::map<std::string, std::size_t> needed_until(const Program& program);

/// Liveness of a program's values by name; depends on its text alone, so it is computed once for a
/// program that runs often.
struct Liveness {
  explicit Liveness(const Program& program);

  /// The index of the last op that reads a value, ops.size() for outputs; no entry if nothing reads
  /// it.
  std::map<std::string, std::size_t> last_use;
  std::map<std::string, std::size_t> needed;  ///< needed_until()
};

}  // namespace shardproof
