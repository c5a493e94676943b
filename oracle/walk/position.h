#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "oracle/walk/array.h"

namespace shardproof::oracle::graph {

/// Returns the part of a value at position i of the pass, L kept as 1; what lacks L stays whole.
template <class Scalar>
Lettered<Scalar> at_position(const Lettered<Scalar>& x, std::int64_t i) {
  const auto at = x.letters.find('L');
  if (at == std::string::npos) return x;
  Lettered<Scalar> y{x.letters, x.shape, {}, x.presence};
  y.shape[at] = 1;
  const auto step = step_of(x.letters, x.shape, 'L');
  const auto places = places_in(y.letters, y.shape, x.letters, x.shape);
  for (const size_t place : places) y.data.push_back(x.data[place + static_cast<size_t>(step * i)]);
  if (y.presence && y.presence->letters.find('L') != std::string::npos) {
    Presence part{y.presence->letters, y.presence->shape, {}};
    part.shape[part.letters.find('L')] = 1;
    const auto move = step_of(y.presence->letters, y.presence->shape, 'L');
    for (const size_t place :
         places_in(part.letters, part.shape, y.presence->letters, y.presence->shape))
      part.here.push_back(y.presence->here[place + static_cast<size_t>(move * i)]);
    y.presence = std::move(part);
  }
  return y;
}

/// Joins values of one position each along L.
template <class Scalar>
Lettered<Scalar> join_positions(const std::vector<Lettered<Scalar>>& parts,
                                const std::string& letters) {
  Lettered<Scalar> y{letters, parts[0].shape, {}};
  const auto at = letters.find('L');
  y.shape[at] = static_cast<std::int64_t>(parts.size());
  y.data.resize(count_of(y.shape));
  const auto step = static_cast<size_t>(step_of(letters, y.shape, 'L'));
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto places = places_in(letters, parts[i].shape, letters, y.shape);
    for (size_t n = 0; n < places.size(); ++n) y.data[places[n] + i * step] = parts[i].data[n];
  }
  bool partly = false;
  for (const Lettered<Scalar>& part : parts) partly = partly || part.presence.has_value();
  if (partly) {
    Presence whole{letters, y.shape, std::vector<std::uint8_t>(y.data.size(), Presence::kPresent)};
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto here = here_in(parts[i].presence, letters, parts[i].shape);
      const auto places = places_in(letters, parts[i].shape, letters, y.shape);
      for (size_t n = 0; n < here.size(); ++n) whole.here[places[n] + i * step] = here[n];
    }
    y.presence = std::move(whole);
  }
  return y;
}

/// Returns the element of `x` that stands where element i of `y` does, at token - 1.
template <class Scalar>
Scalar element_before(const Lettered<Scalar>& x, const Lettered<Scalar>& y, size_t i, size_t token,
                      size_t l) {
  size_t place = 0;
  for (size_t d = 0; d < y.letters.size(); ++d) {
    const auto step = static_cast<size_t>(step_of(y.letters, y.shape, y.letters[d]));
    const size_t index = d == l ? token - 1 : i / step % static_cast<size_t>(y.shape[d]);
    place += index * static_cast<size_t>(step_of(x.letters, x.shape, y.letters[d]));
  }
  return x.data[place];
}

}  // namespace shardproof::oracle::graph
