#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "oracle/graph/detail/array.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/text/ops.h"

namespace shardproof::oracle::graph {

/// top: 1 for the k largest of what exists along a letter, 0 for all others. `where`: the line, as
/// errors begin.
template <class Math, class Scalar = typename Math::Scalar>
Lettered<Scalar> mark_top(const Math& math, const Lettered<Scalar>& x, char letter, std::int64_t k,
                          const std::string& where) {
  if constexpr (kFormal<Math>) {
    throw Error("oracle_graph", where + ": numbers of a field have no order, which top asks for");
  } else {
    Lettered<Scalar> y{x.letters, x.shape, std::vector<Scalar>(x.data.size(), math.number(0))};
    const auto here = here_in(x.presence, x.letters, x.shape);
    const auto step = static_cast<size_t>(step_of(x.letters, x.shape, letter));
    const auto length = static_cast<size_t>(x.shape[x.letters.find(letter)]);
    for (size_t first = 0; first < x.data.size(); ++first) {
      if (first / step % length != 0) continue;
      std::vector<size_t> places;
      for (size_t i = 0; i < length; ++i)
        if (here.empty() || here[first + i * step] != 0) places.push_back(first + i * step);
      std::sort(places.begin(), places.end(), [&](size_t a, size_t b) {
        if (math.less(x.data[b], x.data[a])) return true;
        return !math.less(x.data[a], x.data[b]) && a < b;  // of equals the first
      });
      for (size_t i = 0; i < places.size() && i < static_cast<size_t>(k); ++i)
        y.data[places[i]] = math.number(1);
    }
    return y;
  }
}

/// gather: rows of a table; -0 becomes +0, as in a sum over its shards. `where`: the line, as
/// errors begin.
template <class Math, class Scalar = typename Math::Scalar>
Lettered<Scalar> gather_rows(const Math& math, const Lettered<Scalar>& table,
                             const Lettered<Scalar>& index, const std::string& where) {
  Lettered<Scalar> y{index.letters + table.letters.substr(1), index.shape, {}};
  y.shape.insert(y.shape.end(), table.shape.begin() + 1, table.shape.end());
  const size_t width = table.data.size() / static_cast<size_t>(table.shape[0]);
  for (const Scalar& s : index.data) {
    const double at = math.index(s);
    if (!(at >= 0 && at < static_cast<double>(table.shape[0])))
      throw Error("oracle_graph",
                  fmt::format("{}: gather reads row {} of {}", where, at, table.shape[0]));
    const size_t row = static_cast<size_t>(at) * width;
    for (size_t i = 0; i < width; ++i)
      y.data.push_back(math.pair(ModelOp::add, table.data[row + i], math.number(0)));
  }
  return y;
}

}  // namespace shardproof::oracle::graph
