#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/collectives/moves.h"
#include "engine/numeric/threads.h"
#include "engine/shards/per_chip.h"
#include "engine/shards/sharded.h"

namespace shardproof {

/// Partitions the chips into groups that share one result of an op: chips that read the same
/// buffers, and for which everything else that the op depends on is equal (docs/spec.md section
/// 3.2). Layouts play no part: an op begins with all chips in one group and splits by every operand
/// and by every argument that depends on a chip's place. Where the threads do not share
/// (Threads::share) each chip is a group of its own.
class ChipGroups {
 public:
  ChipGroups(const Torus& torus, const Threads& threads);
  /// Groups chips whether or not the threads share results.
  explicit ChipGroups(const Torus& torus);

  /// Separates chips for which number(chip) differs: a block's index, an offset.
  template <std::invocable<int> Number>
  void split(Number&& number) {
    if (all_alone()) return;
    std::vector<std::uint64_t> numbers(of_chip_.size());
    for (std::size_t chip = 0; chip < numbers.size(); ++chip)
      numbers[chip] = static_cast<std::uint64_t>(number(static_cast<int>(chip)));
    split_by(numbers, [](std::size_t, std::size_t) { return true; });
  }
  /// Separates chips that do not hold the same buffers of a value.
  void split(const Sharded& value);
  template <class V>
  void split(const PerChip<V>& held) {
    split([&](int chip) {
      return reinterpret_cast<std::uintptr_t>(held.identity(static_cast<std::size_t>(chip)));
    });
  }
  /// Separates chips that receive different pieces of a value, by the buffers they come from.
  void split(const Moves& moves, const Sharded& value);
  /// Separates chips whose numbers differ, and those for which same(chip, other) is false.
  void split_by(const std::vector<std::uint64_t>& numbers,
                const std::function<bool(std::size_t, std::size_t)>& same);

  /// The lowest-numbered chip of each group, ascending.
  std::span<const int> first_chips() const { return first_; }
  bool all_alone() const { return first_.size() == of_chip_.size(); }

  /// Calls body(chip) on the first chip of each group.
  template <class Body>
  void for_each(Threads& threads, Body&& body) const {
    threads.for_each(static_cast<std::int64_t>(first_.size()), [&](std::int64_t group) {
      body(static_cast<std::int64_t>(first_[static_cast<std::size_t>(group)]));
    });
  }
  /// Gives every chip what the first chip of its group holds.
  template <class V>
  void share(PerChip<V>& made) const {
    if (all_alone()) return;
    for (std::size_t chip = 0; chip < of_chip_.size(); ++chip)
      if (const auto first = static_cast<std::size_t>(first_[of_chip_[chip]]); first != chip)
        made.share(chip, first);
  }

 private:
  std::vector<std::uint32_t> of_chip_;  // group number of each chip
  std::vector<int> first_;              // first chip of each group
};

/// One empty V per group, shared by the group's chips.
template <class V>
PerChip<V> empty_by(const ChipGroups& groups, std::size_t chips) {
  PerChip<V> all(chips);
  for (const int chip : groups.first_chips()) all[static_cast<std::size_t>(chip)] = V{};
  groups.share(all);
  return all;
}

/// The arrays filled by fill(chip, buffer) on the first chip of each group, `count` elements each,
/// and shared by the group's other chips.
template <class T, class Fill>
ChipArrays<T> made_by(const ChipGroups& groups, std::size_t chips, std::size_t count,
                      Threads& threads, Fill&& fill) {
  ChipArrays<T> made(chips);
  groups.for_each(threads, [&](std::int64_t chip) {
    Buffer<T>& buffer = made[static_cast<std::size_t>(chip)];
    buffer.resize(count);
    fill(chip, buffer.data());
  });
  groups.share(made);
  return made;
}

}  // namespace shardproof
