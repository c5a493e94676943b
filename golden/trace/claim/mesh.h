#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// The writer's device mesh: the order in which stacked values have its dims, and the writer's
/// names for the torus's axes (docs/trace-format.md, `mesh`).
class Mesh {
 public:
  /// Parses "x y z", "z x" or "data=x model=y"; axes not named must have one chip. Throws
  /// Error("dump_mesh", ...) naming the fault.
  static Mesh parse(std::string_view text, const Torus& torus);

  /// Axes of the stacked dims.
  const std::vector<Axis>& order() const { return order_; }
  /// Extents of the stacked dims.
  Shape shape(const Torus& torus) const;
  /// Returns the chip at a row-major index into the stacked dims.
  int chip(const Torus& torus, std::int64_t place) const;
  /// Returns the row-major index of a chip in the stacked dims: its rank, as launchers count.
  int rank(const Torus& torus, int chip) const;
  /// Parses a layout from a JSON list of mesh names per dim, `[null, "model", ["seq", "data"]]`,
  /// for dims with these letters, and from a JSON list of the axes of partial sums, or "". Throws
  /// Error("dump_layout", ...).
  Layout layout(std::string_view letters, std::string_view spec, std::string_view partial) const;

 private:
  std::vector<Axis> order_;
  std::vector<std::string> names_;
};

}  // namespace shardproof::dump
