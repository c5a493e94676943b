#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/cost.h"

namespace shardproof::bench {

/// What a process cost as a whole, its threads and children included, and what it said.
struct Child {
  Cost cost;
  /// Resident memory at most. The system counts a child's from what its parent held at most until
  /// then; where it reports no more than that, the child's own cannot be told.
  std::optional<std::int64_t> peak_bytes;
  std::string text;  ///< its standard output
};

/// Runs a program with these arguments to its end, with nothing on standard input. Throws
/// std::runtime_error unless it exits 0, with the last line that it said.
Child run_child(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace shardproof::bench
