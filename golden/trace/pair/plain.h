#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "golden/trace/pair/pair.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// Two traces side by side without a model: bits, distances, replicas, padding and layouts, and
/// nothing claimed beyond them.
struct Plain {
  std::vector<Difference> differences;  ///< conventions that differ, said before any value
  /// By name; what differs is not judged, as no model says what rounding allows.
  std::vector<PairRow> rows;
  std::vector<std::string> findings;  ///< replicas that differ, layouts that are wrong

  std::int64_t count(Likeness likeness) const;
  /// Returns how many values have other bits.
  std::int64_t different() const;
  /// Returns 0 if there are values of both, all with the same bits, and no findings; else 1.
  int exit_code() const;
};

/// Compares two traces by names, each put together by its own layouts; with `same` by rows and
/// positions, where both claim one defined order the bits must be the same. Throws Error:
/// "dump_layout", "dump_mesh", "dump_attribute" (what an array says of itself has no meaning).
Plain compare_plain(const Dump& a, const Dump& b, bool same);

}  // namespace shardproof::dump
