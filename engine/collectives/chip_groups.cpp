#include "engine/collectives/chip_groups.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <type_traits>
#include <unordered_map>
#include <variant>

namespace shardproof {
namespace {

/// Hashes a number for the table's indices.
std::uint64_t mixed(std::uint64_t number) {
  number ^= number >> 32;
  number *= 0x9E3779B97F4A7C15U;
  return number ^ (number >> 29);
}

}  // namespace

ChipGroups::ChipGroups(const Torus& torus)
    : of_chip_(static_cast<std::size_t>(torus.chips()), 0), first_{0} {}

ChipGroups::ChipGroups(const Torus& torus, const Threads& threads) : ChipGroups(torus) {
  if (threads.shares()) return;
  first_.resize(of_chip_.size());
  std::iota(first_.begin(), first_.end(), 0);
  std::iota(of_chip_.begin(), of_chip_.end(), 0U);
}

void ChipGroups::split(const Sharded& value) {
  std::visit(
      [&](const auto& data) {
        using Kind = std::decay_t<decltype(data)>;
        if constexpr (std::is_same_v<Kind, Partial>) {
          split(data.values);
          split(data.bounds);
          split(data.origins);
        } else if constexpr (std::is_same_v<Kind, FieldShards>) {
          split(data.values);
        } else {
          split(data);
        }
      },
      value.data());
}

void ChipGroups::split(const Moves& moves, const Sharded& value) {
  if (all_alone()) return;
  ChipGroups sources(value.torus());
  sources.split(value);
  const auto source = [&](const Piece& piece) {
    return sources.of_chip_[static_cast<std::size_t>(piece.from_chip)];
  };
  std::vector<std::uint64_t> numbers;
  std::unordered_map<const void*, std::uint64_t>
      of_list;  // a list that several chips share is read once
  for (std::size_t chip = 0; chip < of_chip_.size(); ++chip) {
    std::uint64_t& number = of_list[moves.pieces.identity(chip)];
    if (number == 0) {
      number = 1;
      for (const Piece& piece : moves.pieces[chip]) {
        number = mixed(number + source(piece));
        number = mixed(number + static_cast<std::uint64_t>(piece.from));
        number = mixed(number + static_cast<std::uint64_t>(piece.to));
      }
    }
    numbers.push_back(number);
  }
  split_by(numbers, [&](std::size_t a, std::size_t b) {
    if (moves.pieces.shares(a, b)) return true;
    const std::vector<Piece>& of_a = moves.pieces[a];
    const std::vector<Piece>& of_b = moves.pieces[b];
    return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                      [&](const Piece& x, const Piece& y) {
                        return source(x) == source(y) && x.from == y.from && x.to == y.to;
                      });
  });
}

void ChipGroups::split_by(const std::vector<std::uint64_t>& numbers,
                          const std::function<bool(std::size_t, std::size_t)>& same) {
  if (all_alone()) return;
  constexpr std::uint32_t kFree = ~std::uint32_t{0};
  const std::size_t places = std::bit_ceil(2 * of_chip_.size());
  std::vector<std::uint32_t> table(places, kFree);  // new groups, hashed by number and old group
  std::vector<int> first;
  std::vector<std::uint32_t> of_chip(of_chip_.size());
  for (std::size_t chip = 0; chip < of_chip_.size(); ++chip) {
    std::size_t place = mixed(numbers[chip] + mixed(of_chip_[chip] + std::uint64_t{1})) % places;
    for (;; place = (place + 1) % places) {
      std::uint32_t& group = table[place];
      if (group == kFree) {
        group = static_cast<std::uint32_t>(first.size());
        first.push_back(static_cast<int>(chip));
      }
      const auto of_group = static_cast<std::size_t>(first[group]);
      if (of_group != chip && (numbers[of_group] != numbers[chip] ||
                               of_chip_[of_group] != of_chip_[chip] || !same(of_group, chip)))
        continue;
      of_chip[chip] = group;
      break;
    }
  }
  of_chip_ = std::move(of_chip);
  first_ = std::move(first);
}

}  // namespace shardproof
