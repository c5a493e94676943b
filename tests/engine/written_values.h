#pragma once

// Values on chips, written out: for examples by eye.
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/numeric/threads.h"
#include "engine/shards/sharded.h"
#include "tests/engine/run_program.h"

namespace shardproof {

using Chips = ChipArrays<float>;
using Ints = ChipArrays<std::int32_t>;

inline const Torus kOne;
inline Threads& one() {
  static Threads threads(1);
  return threads;
}

inline Sharded values(const char* layout, const Shape& shape, std::vector<float> data,
                      const Torus& torus = kOne) {
  return shard(tensor_of(shape, std::move(data)), Layout::parse(layout), torus);
}
/// 0, 1, 2, ...: a misplaced element shows.
inline Sharded iota(const char* layout, const Shape& shape, const Torus& torus = kOne,
                    Replicas replicas = Replicas::shared) {
  return shard(tensor_of(shape), Layout::parse(layout), torus, replicas);
}
inline Sharded integers(const char* layout, const Shape& shape, std::vector<std::int32_t> data,
                        const Torus& torus = kOne) {
  IntTensor t(shape);
  t.data = std::move(data);
  return shard(t, Layout::parse(layout), torus);
}

}  // namespace shardproof
