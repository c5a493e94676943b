#include "golden/rerun/order.h"

#include <bit>
#include <numeric>
#include <utility>

namespace shardproof::rerun {

Order::Order(std::size_t n, Draw draw) : terms(n) {
  std::iota(terms.begin(), terms.end(), std::uint32_t{0});
  if (draw.coin())
    for (std::size_t i = n; i > 1; --i) std::swap(terms[i - 1], terms[draw.below(i)]);
  if (n > 0) block = n >> draw.below(static_cast<std::size_t>(std::bit_width(n)));
  pairs = draw.coin();
  fused = draw.coin();
}

}  // namespace shardproof::rerun
