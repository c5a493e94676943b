#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "engine/shards/sharded.h"
#include "golden/compare/sums.h"

namespace shardproof {

// How the comparison reads what a group of chips holds of a block: one chip its own elements, the
// chips of a partialsum what their summands come to. Of each kind of shards:
//
// size(chip): how many elements a chip holds.
// identify(chips, to): appends what tells the memory read for a group of chips from all other.
// kApart: whether the group is also read for what that memory does not show, by look_apart.
// Reader(shards, chips): reads one group's elements, by one thread.
//   wrong(local, want, n): of n elements from `local` on, which must be the words at `want`, the
//     first that is not what it must be; n if all are.
//   at(local, want): an element as it is, to be told of.

/// Of n words at two places, the first that differs; n if none does.
template <class Word>
std::int64_t first_difference(const std::byte* a, const std::byte* b, std::int64_t n) {
  const auto bytes = static_cast<std::size_t>(n) * sizeof(Word);
  if (n >= 8 && std::memcmp(a, b, bytes) == 0) return n;
  for (std::size_t at = 0; at < bytes; at += sizeof(Word)) {
    Word left, right;
    std::memcpy(&left, a + at, sizeof left);
    std::memcpy(&right, b + at, sizeof right);
    if (left != right) return static_cast<std::int64_t>(at / sizeof(Word));
  }
  return n;
}

/// Complete values, and summands that are judged one by one.
template <class T, class Of>
struct HeldShards {
  using Word = Of;
  static constexpr bool kApart = false;
  const ChipArrays<T>& chips;

  const Buffer<T>& of(int chip) const { return chips[static_cast<std::size_t>(chip)]; }
  std::size_t size(int chip) const { return of(chip).size(); }
  void identify(std::span<const int> group, std::vector<std::uintptr_t>& to) const {
    to.push_back(std::bit_cast<std::uintptr_t>(of(group.front()).data()));
  }

  class Reader {
   public:
    Reader(const HeldShards& shards, std::span<const int> group)
        : data_(shards.of(group.front()).data()) {}
    std::int64_t wrong(std::int64_t local, const std::byte* want, std::int64_t n) const {
      return first_difference<Word>(reinterpret_cast<const std::byte*>(data_ + local), want, n);
    }
    Word at(std::int64_t local, const Word&) const { return std::bit_cast<Word>(data_[local]); }

   private:
    const T* data_;
  };
};

/// Exact partial sums by their sum: every element by value and bound, and a few of each group by
/// the origins too, which a later step may need.
struct SummedShards {
  using Word = std::uint32_t;
  /// Where origins are not told, the terms are those that each chip multiplied itself: by operands
  /// that memory which chips share says nothing of.
  static constexpr bool kApart = true;
  const Partial& partial;
  std::int64_t block;  ///< elements of a chip's

  std::size_t size(int chip) const { return partial.values[static_cast<std::size_t>(chip)].size(); }
  void identify(std::span<const int> group, std::vector<std::uintptr_t>& to) const {
    for (const int chip : group) {
      const auto c = static_cast<std::size_t>(chip);
      to.push_back(std::bit_cast<std::uintptr_t>(partial.values[c].data()));
      to.push_back(std::bit_cast<std::uintptr_t>(partial.bounds[c].data()));
      to.push_back(std::bit_cast<std::uintptr_t>(partial.origins[c].data()));
    }
  }

  class Reader {
   public:
    Reader(const SummedShards& shards, std::span<const int> group)
        : partial_(shards.partial),
          block_(shards.block),
          every_(std::max<std::int64_t>(1, shards.block / 4)) {
      for (const int chip : group) elements_.push_back({chip, 0});
    }
    std::int64_t wrong(std::int64_t local, const std::byte* want, std::int64_t n);
    /// The same of those elements alone whose origins are looked at, where the group's values and
    /// bounds are known to be right.
    std::int64_t look_apart(std::int64_t local, const std::byte* want, std::int64_t n);
    Word at(std::int64_t local, Word want);

   private:
    void sum(std::int64_t from);

    const Partial& partial_;
    std::int64_t block_, every_;
    std::vector<Element> elements_;  // of each chip the one that is read
    BlockSums sums_;
    std::int64_t from_ = 0, to_ = 0;  // what they are the sums of
  };
};

/// Partial sums of the field regime by their sum; one that is no number makes none.
struct SummedNumbers {
  using Word = FieldElement;
  static constexpr bool kApart = false;
  const FieldShards& shards;

  const Buffer<FieldElement>& of(int chip) const {
    return shards.values[static_cast<std::size_t>(chip)];
  }
  std::size_t size(int chip) const { return of(chip).size(); }
  void identify(std::span<const int> group, std::vector<std::uintptr_t>& to) const {
    for (const int chip : group) to.push_back(std::bit_cast<std::uintptr_t>(of(chip).data()));
  }

  class Reader {
   public:
    Reader(const SummedNumbers& of, std::span<const int> group) : of_(of), group_(group) {}
    std::int64_t wrong(std::int64_t local, const std::byte* want, std::int64_t n) const;
    Word at(std::int64_t local, const Word&) const;

   private:
    const SummedNumbers& of_;
    std::span<const int> group_;
  };
};

}  // namespace shardproof
