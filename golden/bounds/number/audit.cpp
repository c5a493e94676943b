#include "golden/bounds/number/audit.h"

#include <algorithm>
#include <cmath>

namespace shardproof::bounds {

double residue_audit(const Products& products, double largest) {
  if (!(largest > 0) || !std::isfinite(largest)) return 0.0;
  constexpr int kBinades = 10, kDigits = 24;
  const int top = std::ilogb(largest);
  double all = 0.0;
  for (int j = 0; j < kBinades; ++j) {
    const double unit = std::ldexp(1.0, top - (kDigits - 1) - j);
    double sum = 0.0, least = 0.0, most = 0.0;
    for (const auto& [a, b] : products) {
      const double p = a * b;
      sum += unit * std::nearbyint(p / unit) - p;
      least = std::min(least, sum);
      most = std::max(most, sum);
    }
    all += most - least;
  }
  return all;
}

}  // namespace shardproof::bounds
