#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/cost.h"

namespace shardproof::bench {

/// Total cost of a process, including its threads and children, and its output.
struct Child {
  Cost cost;
  /// Peak resident memory. The system starts a child's peak at its parent's peak so far; nullopt if
  /// the reported value does not exceed that, which hides the child's own.
  std::optional<std::int64_t> peak_bytes;
  /// Peak of its memory that is not of files, as sampled while it ran; without its children's.
  std::int64_t own_bytes = 0;
  std::string text;  ///< its standard output
};

/// Runs a program with these arguments to its end, with empty standard input. Throws
/// std::runtime_error, with the last line it printed, unless it exits with `code`.
Child run_child(const std::string& program, const std::vector<std::string>& arguments,
                int code = 0);

}  // namespace shardproof::bench
