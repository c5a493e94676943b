#include "oracle/formulas/degree.h"

#include <algorithm>

namespace shardproof::oracle {

namespace {

Degree by_layer(const Degree& x, const Degree& y,
                std::int64_t (*join)(std::int64_t, std::int64_t)) {
  Degree z{join(x.a, y.a), {}};
  z.e.resize(std::max(x.e.size(), y.e.size()));
  const auto at = [](const Degree& d, std::size_t layer) {
    return layer < d.e.size() ? d.e[layer] : 0;
  };
  for (std::size_t layer = 0; layer < z.e.size(); ++layer)
    z.e[layer] = join(at(x, layer), at(y, layer));
  return z;
}

}  // namespace

std::int64_t Degree::of_numerator(const std::map<int, std::int64_t>& inverses) const {
  std::int64_t degree = a;
  for (const auto& [layer, count] : inverses)
    if (const auto l = static_cast<std::size_t>(layer); l < e.size()) degree += e[l] * 2 * count;
  return degree;
}

Degree product(const Degree& x, const Degree& y) {
  return by_layer(x, y, [](std::int64_t i, std::int64_t j) { return i + j; });
}

Degree sum(const Degree& x, const Degree& y) {
  return by_layer(x, y, [](std::int64_t i, std::int64_t j) { return std::max(i, j); });
}

Degree over(Degree x, int layer) {
  x.e.resize(std::max(x.e.size(), static_cast<std::size_t>(layer) + 1));
  ++x.e[static_cast<std::size_t>(layer)];
  return x;
}

}  // namespace shardproof::oracle
