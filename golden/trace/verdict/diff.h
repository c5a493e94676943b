#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/layout/torus.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof {

/// The first element that two traces have otherwise.
struct TraceDifference {
  std::string name = {};         ///< of the value
  std::optional<int> chip = {};  ///< where it stands as shards in one of them
  Shape index = {};  ///< of the whole value, or of the chip's shard; none where `why` says all
  double a = 0.0, b = 0.0;
  std::string why = {};  ///< what differs, if not elements: "shapes [2,3] and [3,2]"
};

/// What two traces have in common, bit for bit.
struct TraceDiff {
  Torus torus;
  std::int64_t equal = 0;              ///< values
  std::vector<std::string> different;  ///< in the order of the run, as `a` has it
  std::vector<std::string> only_a, only_b;
  std::optional<TraceDifference> first;  ///< of the first in `different`

  /// 0 where both have the same values with the same bits, and at least one; else 1.
  int exit_code() const;
};

/// Compares two traces of one case value by value, by their names, bit for bit; f64 and f32 by what
/// they are. A value that stands whole in one and as shards in the other is cut by its layout.
/// Throws Error: "compare_case" (they are of different cases), what candidate::read_claim throws,
/// and "dump_layout" (a layout that a value cannot have).
TraceDiff diff_traces(const dump::Dump& a, const dump::Dump& b);

}  // namespace shardproof
