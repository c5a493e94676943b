#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace shardproof::oracle::field {

/// How large a polynomial a value is, of the inputs and the results of functions: a quotient N / D,
/// D = Π_l Δ_l^e_l with Δ_l the product of all denominators of layer l, that are of degree 2 each;
/// N has at most degree a + deg D. An input and a function's result have a = 1, an integer a = 0.
struct Degree {
  std::int64_t a = 0;
  std::vector<std::int64_t> e;  ///< by layer; layers that are left out have 0

  auto operator<=>(const Degree&) const = default;
  /// At least deg N, where there are so many denominators in each layer.
  std::int64_t of_numerator(const std::map<int, std::int64_t>& inverses) const;
};

Degree product(const Degree& x, const Degree& y);
/// Of sums, and of elements beside each other.
Degree sum(const Degree& x, const Degree& y);
/// Of x divided by denominators of layer `layer`.
Degree over(Degree x, int layer);

}  // namespace shardproof::oracle::field
