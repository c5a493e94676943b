#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "weights/base/error.h"

namespace shardproof::candidate {

/// The mesh of a trace's writer: the order in which stacked values have its dims, and the writer's
/// names of the torus's axes (docs/trace-format.md, `mesh`).
class Mesh {
 public:
  /// "x y z", "z x" or "data=x model=y"; axes that it does not name have one chip. Throws
  /// Error("dump_mesh", ...) naming what is wrong.
  static Mesh parse(std::string_view text, const Torus& torus);

  /// Of the stacked dims.
  const std::vector<Axis>& order() const { return order_; }
  /// The stacked dims' extents.
  Shape shape(const Torus& torus) const;
  /// The chip of a place in the stacked dims, row-major.
  int chip(const Torus& torus, std::int64_t place) const;
  /// The place of a chip in the stacked dims, row-major: its rank, as launchers count.
  int rank(const Torus& torus, int chip) const;
  /// The layout that a JSON list of names for each dim says, `[null, "model", ["seq", "data"]]`,
  /// of dims with these letters, and a JSON list of the axes of partial sums or "". Throws
  /// Error("dump_layout", ...).
  Layout layout(std::string_view letters, std::string_view spec, std::string_view partial) const;

 private:
  std::vector<Axis> order_;
  std::vector<std::string> names_;
};

}  // namespace shardproof::candidate
