#pragma once

#include <string>
#include <vector>

#include "engine/program/program.h"
#include "weights/base/error.h"

namespace shardproof {

/// One legal op on the path from a layout to another, and the layout after it.
struct Move {
  Op op;  ///< a collective or a slice, without operand and result
  Layout to;
};

/// The path from one layout to another; no moves if they are equal.
struct Path {
  std::vector<Move> moves;
  /// Elements sent over all chips of the price torus, for a value with extent 64 in each dim.
  std::int64_t price = 0;
};

/// The cheapest path from one layout to another over the same letters, by Dijkstra's algorithm: a
/// state is a layout, an edge one legal op, its price the ledger's (engine/program/count.h). Ties
/// go to the fewest ops, then to a fixed order. Axes are placed only in dims whose subscript
/// changes, and a layout that does not divide `shape` on `torus` is not a state.
///
/// Prices are those of a 4x4x4 torus, so the path depends on the real torus by divisibility alone.
///
/// Throws Error("path_c1", ...) if the letters differ, and Error("path_c2", ...) if there is no
/// path, naming the dim that does not divide or the axes that no op can make partial.
Path cheapest_path(const Layout& from, const Layout& to, const Shape& shape, const Torus& torus);

}  // namespace shardproof
