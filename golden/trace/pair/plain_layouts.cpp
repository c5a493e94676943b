#include "golden/trace/pair/plain_layouts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

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

double chance_of_nearer(const MovedDistances& distances) {
  if (distances.other.empty()) return 0.0;
  const double most = *std::max_element(distances.other.begin(), distances.other.end());
  const auto n = static_cast<double>(distances.other.size());
  const auto above = static_cast<double>(std::count_if(
      distances.declared.begin(), distances.declared.end(), [&](double d) { return d > most; }));
  // Of all orders of 2 n numbers those whose last ones are all of one side: C(2n-above, n)/C(2n,
  // n).
  const auto log_of_choices = [&](double of) {
    return std::lgamma(of + 1) - std::lgamma(n + 1) - std::lgamma(of - n + 1);
  };
  return (log_of_choices(2 * n - above) - log_of_choices(2 * n)) / std::numbers::ln2;
}

}  // namespace shardproof::dump
