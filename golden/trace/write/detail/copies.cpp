#include "golden/trace/write/detail/copies.h"

#include <array>

namespace shardproof {

int first_copy(const Layout& layout, const Torus& torus, int chip) {
  const std::array<int, 3> at = judged_coordinates(torus, chip);
  int first = 0;
  for (const Axis axis : {Axis::x, Axis::y, Axis::z}) {
    bool named = layout.partial().has(axis);
    for (const Layout::Dim& dim : layout.dims()) named = named || dim.axes.has(axis);
    first = first * torus.size(axis) + (named ? at[static_cast<std::size_t>(axis)] : 0);
  }
  return first;
}

}  // namespace shardproof
