#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/layout/torus.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof {

/// The first element that differs between two traces.
struct TraceDifference {
  std::string name = {};         ///< the value's
  std::optional<int> chip = {};  ///< if it is in shards in one of them
  Shape index = {};  ///< in the whole value, or in the chip's shard; empty if `why` says all
  double a = 0.0, b = 0.0;
  std::string why = {};  ///< the difference, if not of elements: "shapes [2,3] and [3,2]"
};

/// Comparison of two traces, bit for bit.
struct TraceDiff {
  Torus torus;
  std::int64_t equal = 0;              ///< number of equal values
  std::vector<std::string> different;  ///< in the order of the run, as in `a`
  std::vector<std::string> only_a, only_b;
  std::optional<TraceDifference> first;  ///< the first of `different`

  /// Returns 0 if both have the same values with the same bits, and at least one; otherwise 1.
  int exit_code() const;
};

/// Compares two traces of one case by value names, bit for bit; f64 and f32 by their numbers. A
/// value that is whole in one trace and in shards in the other is cut by its layout. Throws Error:
/// "compare_case" (different cases), what dump::read_claim throws, and "dump_layout" (a layout
/// that the value cannot have).
TraceDiff diff_traces(const dump::Dump& a, const dump::Dump& b);

}  // namespace shardproof
