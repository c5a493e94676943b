#pragma once

#include <cstdint>
#include <vector>

#include "engine/collectives/moves.h"
#include "engine/layout/detail/box.h"

namespace shardproof {

/// A contiguous run of a block's elements, from the block's first element there and here.
struct Run {
  std::int64_t from, to;
};

/// The runs that every piece of the moves has; all of one length.
struct Runs {
  std::vector<Run> all;
  std::int64_t length = 0;

  explicit Runs(const Moves& moves) {
    const Shape zero(moves.block.size(), 0);
    for_each_run(moves.block, moves.from_local, zero, moves.to_local, zero,
                 [&](std::int64_t from, std::int64_t to, std::int64_t n) {
                   all.push_back({from, to});
                   length = n;
                 });
  }
};

/// Asks the caches for a run a few runs before its turn: runs lie apart, which no hardware
/// foresees.
template <class T>
void prefetch_ahead(const Runs& runs, std::size_t now, const T* from) {
  constexpr std::size_t kAhead = 4;
  constexpr std::int64_t kLine = 64 / sizeof(T);
  if (now + kAhead >= runs.all.size()) return;
  const T* const at = from + runs.all[now + kAhead].from;
  for (std::int64_t i = 0; i < runs.length; i += kLine) __builtin_prefetch(at + i);
}

}  // namespace shardproof
