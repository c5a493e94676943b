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

// How the comparison reads the block that a group of chips holds: the elements of a single chip, or
// the total of the chips' partial sums. Every kind of shards has:
//
// size(chip): the number of elements that a chip holds.
// identify(chips, to): appends values that identify the memory read for a group of chips.
// kApart: true if look_apart must also check the group for what that memory does not show.
// Reader(shards, chips): reads one group's elements, on one thread.
//   wrong(local, want, n): returns the index of the first of n elements, from `local` on, that
//     differs from the words at `want`; n if all are right.
//   at(local, want): returns an element's actual value, for the report.

/// Returns the index of the first of n words that differs between two arrays; n if all are equal.
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

/// Complete values, and partial sums that are judged individually.
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

/// Exact partial sums, judged by their total: every element by value and bound, and a few of each
/// group also by their origins, which a later step may need.
struct SummedShards {
  using Word = std::uint32_t;
  /// Without explicit origins, the terms are those that each chip multiplied itself. Their operands
  /// are not identified by the memory that chips share.
  static constexpr bool kApart = true;
  const Partial& partial;
  std::int64_t block;  ///< elements of a chip's shard

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
    /// Returns the index of the first wrong element among those whose origins are checked, for a
    /// group whose values and bounds are already known to be right; n if there is none.
    std::int64_t look_apart(std::int64_t local, const std::byte* want, std::int64_t n);
    Word at(std::int64_t local, Word want);

   private:
    void sum(std::int64_t from);

    const Partial& partial_;
    std::int64_t block_, every_;
    std::vector<Element> elements_;  // the current element of each chip
    BlockSums sums_;
    std::int64_t from_ = 0, to_ = 0;  // range of elements that sums_ covers
  };
};

/// Partial sums of the field regime, judged by their total; an invalid partial sum is the total.
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
