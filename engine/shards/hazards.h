#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/layout/layout.h"
#include "engine/numeric/buffer.h"
#include "engine/numeric/threads.h"
#include "engine/shards/finding.h"
#include "engine/shards/sharded.h"

namespace shardproof {

/// Hostile treatment of a run's own memory and order, so that an op that is right only by accident
/// fails. None of it changes a bit of a correct program's results. The default is none. `verify
/// --hazards shared`, the default there, and tests use all but `alone`, `--hazards full` all.
struct Hazards {
  bool fresh_nan = false;  ///< fill fresh buffers with NaN, to expose elements never written
  bool poison = false;     ///< NaN in values last used and in freed buffers, to expose late reads
  std::optional<std::uint64_t> order;  ///< chips are visited in a random order from this seed
  bool replicas = false;               ///< chips that hold the same block are compared, bit for bit
  /// Every chip computes by itself, on its own buffers. If false, chips that read the same buffers
  /// share one result (engine/collectives/chip_groups.h).
  bool alone = false;

  static Hazards hostile(std::uint64_t seed = 1) { return {true, true, seed, true, false}; }
  static Hazards full(std::uint64_t seed = 1) { return {true, true, seed, true, true}; }

  /// How the run's inputs are placed.
  Replicas placed() const { return alone ? Replicas::own : Replicas::shared; }
};

/// Applies the hazards to the memory and to the order and sharing of `threads` during its lifetime.
class HazardScope {
 public:
  HazardScope(const Hazards& hazards, Threads& threads)
      : memory_(hazards.fresh_nan, hazards.poison), threads_(threads) {
    threads_.shuffle(hazards.order);
    threads_.share(!hazards.alone);
  }
  ~HazardScope() {
    threads_.shuffle(std::nullopt);
    threads_.share(true);
  }
  HazardScope(const HazardScope&) = delete;
  HazardScope& operator=(const HazardScope&) = delete;

 private:
  chip_memory::Hostile memory_;
  Threads& threads_;
};

/// Compares the chips that hold the same block by the declared layout: those that differ only in
/// axes that it does not use. For partial sums, compares values and bounds. Returns the first
/// difference, with the rule "hazard_replicas": it names step, both chips and the first local
/// element that differs.
std::optional<Finding> replica_difference(const std::string& step, const Layout& declared,
                                          const Sharded& value);

}  // namespace shardproof
