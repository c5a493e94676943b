#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace shardproof::oracle {

/// Degree of a value as a rational function N / D of the inputs and the results of functions: D =
/// Π_l Δ_l^e_l with Δ_l the product of all denominators of layer l, each of degree 2; N has at most
/// degree a + deg D. An input and a function's result have a = 1, an integer a = 0.
struct Degree {
  std::int64_t a = 0;
  std::vector<std::int64_t> e;  ///< by layer; omitted layers have 0

  auto operator<=>(const Degree&) const = default;
  /// Returns an upper bound of deg N for these numbers of denominators per layer.
  std::int64_t of_numerator(const std::map<int, std::int64_t>& inverses) const;
};

Degree product(const Degree& x, const Degree& y);
/// Degree of x + y, and of a tensor that holds both.
Degree sum(const Degree& x, const Degree& y);
/// Degree of x divided by denominators of layer `layer`.
Degree over(Degree x, int layer);

}  // namespace shardproof::oracle
