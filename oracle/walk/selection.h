#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "oracle/walk/array.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/text/ops.h"

namespace shardproof::oracle::graph {

/// Returns 1 for each of the k largest, of equals the first, otherwise 0.
template <class Real>
std::vector<Real> marks_of_largest(const std::vector<Real>& all, size_t k) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return all[a] > all[b] || (all[a] == all[b] && a < b); });
  std::vector<Real> marks(all.size(), Real{0});
  for (size_t i = 0; i < order.size() && i < k; ++i) marks[order[i]] = Real{1};
  return marks;
}

/// top: 1 for the k largest of what exists along a letter, 0 for all others; unknown marks if it is
/// not known what exists. `where`: the line, as
/// errors begin.
template <class Math, class Scalar = typename Math::Scalar>
Lettered<Scalar> mark_top(const Math& math, const Lettered<Scalar>& x, char letter, std::int64_t k,
                          const std::string& where) {
  if constexpr (Math::kFormal) {
    throw Error("oracle_graph", where + ": numbers of a field have no order, which top asks for");
  } else {
    Lettered<Scalar> y{x.letters, x.shape, std::vector<Scalar>(x.data.size(), math.number(0))};
    const auto here = here_in(x.presence, x.letters, x.shape);
    const auto step = static_cast<size_t>(step_of(x.letters, x.shape, letter));
    const auto length = static_cast<size_t>(x.shape[x.letters.find(letter)]);
    for (size_t first = 0; first < x.data.size(); ++first) {
      if (first / step % length != 0) continue;
      std::vector<size_t> places;
      bool known = true;
      for (size_t i = 0; i < length; ++i) {
        const std::uint8_t exists = here.empty() ? Presence::kPresent : here[first + i * step];
        if (exists != Presence::kAbsent) places.push_back(first + i * step);
        known = known && exists != Presence::kPerhaps;
      }
      if (!known) {
        for (const size_t place : places) y.data[place] = math.unknown();
        continue;
      }
      std::vector<Scalar> numbers;
      for (const size_t place : places) numbers.push_back(x.data[place]);
      const std::vector<Scalar> marks = math.top(numbers, static_cast<size_t>(k));
      for (size_t i = 0; i < places.size(); ++i) y.data[places[i]] = marks[i];
    }
    return y;
  }
}

/// gather: rows of a table. `where`: the line, as errors begin.
template <class Math, class Scalar = typename Math::Scalar>
Lettered<Scalar> gather_rows(const Math& math, const Lettered<Scalar>& table,
                             const Lettered<Scalar>& index, const std::string& where) {
  Lettered<Scalar> y{index.letters + table.letters.substr(1), index.shape, {}};
  y.shape.insert(y.shape.end(), table.shape.begin() + 1, table.shape.end());
  const size_t width = count_of(table.shape) / static_cast<size_t>(table.shape[0]);
  const auto element = [&](size_t i) {
    return table.floats != nullptr ? math.number(static_cast<double>((*table.floats)[i]))
                                   : table.data[i];
  };
  for (const Scalar& s : index.data) {
    if (!math.is_known(s)) {
      y.data.insert(y.data.end(), width, math.unknown());
      continue;
    }
    const double at = math.index(s);
    require_row(at, table.shape[0], where);
    const size_t row = static_cast<size_t>(at) * width;
    for (size_t i = 0; i < width; ++i) y.data.push_back(math.gathered(element(row + i)));
  }
  return y;
}

}  // namespace shardproof::oracle::graph
