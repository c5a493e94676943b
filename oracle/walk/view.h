#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "oracle/walk/array.h"
#include "weights/base/tensor.h"

namespace shardproof::oracle::graph {

/// Puts the letters `to`, with the shape `other`, in place of the letters `from`.
inline void put_letters(std::string& letters, Shape& shape, const std::string& from,
                        const std::string& to, const Shape& other) {
  const auto at = letters.find(from);
  letters.replace(at, from.size(), to);
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at),
              shape.begin() + static_cast<std::ptrdiff_t>(at + from.size()));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), other.begin(), other.end());
}

/// split_dim and merge_dim: the same elements under the letters `to` in place of `from`.
template <class Scalar>
Lettered<Scalar> view_dims(const Lettered<Scalar>& x, const std::string& from,
                           const std::string& to, const Shape& other) {
  Lettered<Scalar> y = x;
  put_letters(y.letters, y.shape, from, to, other);
  if (!y.presence) return y;
  Presence& p = *y.presence;
  if (p.letters.find(from) != std::string::npos) {
    put_letters(p.letters, p.shape, from, to, other);
  } else if (p.letters.find_first_of(from) != std::string::npos) {
    // Some of the merged letters only: all of them first.
    Presence all{x.letters, x.shape, here_in(x.presence, x.letters, x.shape)};
    put_letters(all.letters, all.shape, from, to, other);
    p = std::move(all);
  }
  return y;
}

}  // namespace shardproof::oracle::graph
