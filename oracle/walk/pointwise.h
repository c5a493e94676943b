#pragma once

#include <cstdint>
#include <string>

#include "oracle/walk/array.h"
#include "weights/text/ops.h"

namespace shardproof::oracle::graph {

/// Returns f of each element.
template <class Scalar, class F>
Lettered<Scalar> map_elements(const Lettered<Scalar>& x, F&& f) {
  Lettered<Scalar> y{x.letters, x.shape, {}, x.presence};
  y.data.reserve(x.data.size());
  for (const Scalar& s : x.data) y.data.push_back(f(s));
  return y;
}

/// Returns a function of two elements, over the letters of either.
template <class Math, class Scalar = typename Math::Scalar>
Lettered<Scalar> pair_elements(const Math& math, ModelOp op, const Lettered<Scalar>& a,
                               const Lettered<Scalar>& b) {
  Lettered<Scalar> y{a.letters, a.shape, {}};
  for (size_t i = 0; i < b.letters.size(); ++i)
    if (a.letters.find(b.letters[i]) == std::string::npos) {
      y.letters += b.letters[i];
      y.shape.push_back(b.shape[i]);
    }
  const auto in_a = places_in(y.letters, y.shape, a.letters, a.shape);
  const auto in_b = places_in(y.letters, y.shape, b.letters, b.shape);
  y.data.reserve(in_a.size());
  for (size_t i = 0; i < in_a.size(); ++i)
    y.data.push_back(math.pair(op, a.data[in_a[i]], b.data[in_b[i]]));
  y.presence = both(a.presence, b.presence, y.letters, y.shape);
  return y;
}

/// turn: each pair (a, b) of the first `channels` elements along a letter becomes (-b, a), all
/// others 0; `half`: the pairs are of the two halves, otherwise of neighbours.
template <class Math, class Scalar = typename Math::Scalar>
Lettered<Scalar> turn_pairs(const Math& math, const Lettered<Scalar>& x, char letter, bool half,
                            std::int64_t channels) {
  Lettered<Scalar> y{x.letters, x.shape, std::vector<Scalar>(x.data.size(), math.number(0)),
                     x.presence};
  const auto step = static_cast<size_t>(step_of(x.letters, x.shape, letter));
  const auto length = static_cast<size_t>(x.shape[x.letters.find(letter)]);
  const auto pairs = static_cast<size_t>(channels / 2);
  for (size_t first = 0; first < x.data.size(); ++first) {
    if (first / step % length != 0) continue;
    for (size_t j = 0; j < pairs; ++j) {
      const size_t a = first + (half ? j : 2 * j) * step;
      const size_t b = first + (half ? j + pairs : 2 * j + 1) * step;
      y.data[a] = math.negative(x.data[b]);
      y.data[b] = x.data[a];
    }
  }
  return y;
}

}  // namespace shardproof::oracle::graph
