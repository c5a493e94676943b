#include "golden/trace/pair/plain_layouts.h"

#include <algorithm>
#include <array>

namespace shardproof::dump {

std::vector<Layout> other_layouts(const Layout& layout, const Torus& torus) {
  std::vector<Layout> all;
  std::array<Axis, 3> order{Axis::x, Axis::y, Axis::z};
  const std::size_t rank = layout.rank();
  do {
    // Each axis goes to a dim, or to none; those of one dim stand in this order.
    for (std::size_t code = 0; code < (rank + 1) * (rank + 1) * (rank + 1); ++code) {
      std::vector<Layout::Dim> dims = layout.dims();
      for (Layout::Dim& dim : dims) dim.axes = Axes();
      std::size_t left = code;
      bool fits = true;
      for (const Axis axis : order) {
        const std::size_t to = left % (rank + 1);
        left /= rank + 1;
        const bool has = torus.size(axis) > 1 && !layout.partial().has(axis);
        if (to == rank) continue;
        fits = fits && has;
        if (fits) dims[to].axes = dims[to].axes.with(axis);
      }
      for (std::size_t d = 0; d < rank && fits; ++d)
        fits = torus.size(dims[d].axes) == torus.size(layout.dims()[d].axes);
      if (!fits) continue;
      Layout other(std::move(dims), layout.partial());
      if (!(other == layout) && std::find(all.begin(), all.end(), other) == all.end())
        all.push_back(std::move(other));
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return all;
}

}  // namespace shardproof::dump
