#pragma once

#include <cstdint>
#include <vector>

#include "engine/collectives/moves.h"
#include "engine/layout/detail/box.h"

namespace shardproof {

/// A contiguous run of a block's elements: its offsets from the block's first element in the source
/// and target shards.
struct Run {
  std::int64_t from, to;
};

/// The runs common to all pieces of the moves; all of one length.
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

/// Prefetches a run several runs ahead: runs are not contiguous, so no hardware foresees them.
template <class T>
void prefetch_ahead(const Runs& runs, std::size_t now, const T* from) {
  constexpr std::size_t kAhead = 4;
  constexpr std::int64_t kLine = 64 / sizeof(T);
  if (now + kAhead >= runs.all.size()) return;
  const T* const at = from + runs.all[now + kAhead].from;
  for (std::int64_t i = 0; i < runs.length; i += kLine) __builtin_prefetch(at + i);
}

}  // namespace shardproof
