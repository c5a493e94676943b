#include "golden/trace/layout/arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardproof::dump {

std::string in_brackets(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

Arrays arrays_of(const std::string& name, const dump::Value& value, const Mesh& mesh,
                 const Torus& torus, std::size_t rank) {
  Arrays a;
  a.torus = torus;
  if (value.in_shards()) {
    for (const auto& [at, stored] : value.chips) {
      const Torus& t = a.torus;
      if (at[0] >= t.size(Axis::x) || at[1] >= t.size(Axis::y) || at[2] >= t.size(Axis::z))
        throw Error("dump_layout", fmt::format("{}: chip {}_{}_{} is not on torus {}", name, at[0],
                                               at[1], at[2], t.to_string()));
      if (a.shards.empty()) a.local = stored.shape;
      if (stored.shape != a.local)
        throw Error("dump_layout", fmt::format("{}: shards of shapes {} and {}", name,
                                               in_brackets(a.local), in_brackets(stored.shape)));
      a.encoding = stored.encoding;
      a.shards.push_back({(at[0] * t.size(Axis::y) + at[1]) * t.size(Axis::z) + at[2], &stored, 0});
    }
    return a;
  }
  const dump::StoredArray& stored = value.whole;
  a.encoding = stored.encoding;
  const Shape stacked = mesh.shape(a.torus);
  if (stored.shape.size() == rank) {
    a.whole = true;
    a.torus = Torus(1, 1, 1);
    a.local = stored.shape;
    a.shards.push_back({0, &stored, 0});
    return a;
  }
  if (stored.shape.size() != rank + stacked.size())
    throw Error("dump_layout",
                fmt::format("{}: an array {} is neither whole, of {} dims, nor stacked, of {} "
                            "before them",
                            name, in_brackets(stored.shape), rank, stacked.size()));
  if (!std::equal(stacked.begin(), stacked.end(), stored.shape.begin()))
    throw Error("dump_layout", fmt::format("{}: an array {} is not stacked over the mesh {}", name,
                                           in_brackets(stored.shape), in_brackets(stacked)));
  a.local.assign(stored.shape.begin() + static_cast<std::ptrdiff_t>(stacked.size()),
                 stored.shape.end());
  const auto size = static_cast<std::size_t>(element_count(a.local));
  for (std::int64_t place = 0; place < element_count(stacked); ++place)
    a.shards.push_back(
        {mesh.chip(a.torus, place), &stored, static_cast<std::size_t>(place) * size});
  return a;
}

}  // namespace shardproof::dump
