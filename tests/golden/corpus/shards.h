#pragma once

// Somebody's shards, to be held against goldens.
#include <cstddef>
#include <string>
#include <vector>

#include "golden/corpus/detail/layouts.h"
#include "golden/corpus/detail/stacked.h"
#include "golden/corpus/golden_comparison.h"
#include "tests/golden/corpus/goldens.h"

namespace shardproof::corpus {

using dump::Dump;
using dump::StoredArray;
using dump::Value;

inline const Torus kTorus(4, 2, 3);

inline const Dump& all_layouts() {
  static const Dump golden = layouts_golden(kTorus);
  return golden;
}
inline const Dump& all_collectives() {
  static const Dump golden = collectives_golden(kTorus);
  return golden;
}

/// Every number of an array, chip after chip.
inline std::vector<double> numbers(const Dump& golden, const std::string& name) {
  const StoredArray& stored = golden.values.find(name)->second.whole;
  std::vector<double> all(stored.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = stored.at(i);
  return all;
}

/// As somebody else's numbers, of 64 bits.
inline StoredArray as_f64(Shape shape, const std::vector<double>& all) {
  StoredArray stored{std::move(shape), NumberFormat::f64, {}};
  const auto* const bytes = reinterpret_cast<const std::byte*>(all.data());
  stored.bytes.assign(bytes, bytes + all.size() * sizeof(double));
  return stored;
}

/// Somebody's file, of nothing but what a file must say.
inline Dump empty_file() {
  Dump file;
  file.attributes = {{"format", "shardproof trace"}, {"version", "1"}};
  return file;
}

inline void add(Dump& file, const std::string& name, Value value) {
  file.order.push_back(name);
  file.values[name] = std::move(value);
}

inline Shape local_shape_of(const Dump& golden, const std::string& name) {
  const Shape& shape = golden.values.find(name)->second.whole.shape;
  return {shape.begin() + 3, shape.end()};
}

/// The results of a golden with the numbers that `change` makes of them, by chip, without layouts.
inline Dump in_shards(const Dump& golden, const std::vector<double>& all, const std::string& name) {
  Dump file = empty_file();
  Value value;
  const Torus torus = torus_of(golden);
  const Shape local = local_shape_of(golden, name);
  const auto block = static_cast<std::ptrdiff_t>(element_count(local));
  for (int chip = 0; chip < torus.chips(); ++chip)
    value.chips[judged_coordinates(torus, chip)] =
        as_f64(local, {all.begin() + chip * block, all.begin() + (chip + 1) * block});
  add(file, name, std::move(value));
  return file;
}

}  // namespace shardproof::corpus
