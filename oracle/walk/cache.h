#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "oracle/walk/array.h"
#include "oracle/walk/place.h"
#include "weights/base/tensor.h"

namespace shardproof::oracle::graph {

inline std::string letters_but_rows(std::string_view letters) {
  std::string rest;
  for (const char c : letters)
    if (c != 'B' && c != 'L') rest += c;
  return rest;
}

/// append: puts the tokens of x at their positions, as f32, into a cache, which then has all slots
/// of the pass. Returns the cache with M in the place of x's L.
template <class Math, class Scalar = typename Math::Scalar>
Lettered<Scalar> append_to(const Math& math, Lettered<Scalar>& cache, const Lettered<Scalar>& x,
                           const Place<Scalar>& place) {
  const Lettered<Scalar> fresh = in_order(x, "BL" + letters_but_rows(x.letters));
  const Lettered<Scalar> old = std::move(cache);
  cache = {"BM" + fresh.letters.substr(2), fresh.shape, {}};
  cache.shape[1] = place.extent('M');
  cache.data.assign(count_of(cache.shape), math.number(0));
  const auto B = static_cast<size_t>(fresh.shape[0]), L = static_cast<size_t>(fresh.shape[1]);
  const auto M = static_cast<size_t>(cache.shape[1]);
  const size_t width = cache.data.size() / (B * M);
  const size_t before = old.data.empty() ? 0 : static_cast<size_t>(old.shape[1]);
  for (size_t b = 0; b < B; ++b) {
    std::copy_n(old.data.data() + b * before * width, before * width,
                cache.data.data() + b * M * width);
    for (size_t i = 0; i < static_cast<size_t>(place.tokens[b]); ++i) {
      const std::int64_t p = place.positions[b * L + i];
      for (size_t n = 0; n < width; ++n)
        cache.data[(b * M + static_cast<size_t>(p)) * width + n] =
            math.named(fresh.data[(b * L + i) * width + n]);
    }
  }
  std::string letters = x.letters;
  letters[letters.find('L')] = 'M';
  return in_order(cache, letters);
}

}  // namespace shardproof::oracle::graph
