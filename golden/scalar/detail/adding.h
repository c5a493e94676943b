#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "golden/scalar/ring_place.h"

namespace shardproof::scalar {

/// The orders in which a reduction adds its terms (docs/spec.md section 1.2), for any kind of
/// number: `number.plus(a, b)` is one addition, `number.hop(a)` what a chip of a ring sends.
template <class Number, class Arithmetic>
struct Adding {
  Arithmetic number;

  /// Adds all terms, given in group order, along the ring if there is one, otherwise by the
  /// schedule.
  Number sum(const std::vector<Number>& terms, Loop way, Schedule schedule,
             const InRing& at) const {
    if (way != Loop::none) return ring_sum(way, terms, at.chunk, at.second_half);
    if (schedule == Schedule::tree) return tree_sum(terms);
    Number total = terms[0];
    for (std::size_t i = 1; i < terms.size(); ++i) total = number.plus(number.hop(total), terms[i]);
    return total;
  }

  Number in_turn(const std::vector<Number>& terms, const std::vector<std::int64_t>& order) const {
    Number total = terms[static_cast<std::size_t>(order.front())];
    for (std::size_t i = 1; i < order.size(); ++i)
      total = number.plus(number.hop(total), terms[static_cast<std::size_t>(order[i])]);
    return total;
  }

  /// Adds up a chunk along a ring that ends at its owner, chip c of K. With both_half, the two
  /// halves travel in opposite directions; with both_full, two sums meet at the owner.
  Number ring_sum(Loop loop, const std::vector<Number>& terms, std::int64_t c,
                  bool second_half) const {
    const auto K = static_cast<std::int64_t>(terms.size());
    std::vector<std::int64_t> order;
    order.reserve(terms.size());
    if (loop != Loop::both_full) {
      const std::int64_t next = loop == Loop::both_half && second_half ? K - 1 : 1;
      for (std::int64_t chip = (c + next) % K; std::ssize(order) < K; chip = (chip + next) % K)
        order.push_back(chip);
      return in_turn(terms, order);
    }
    // The first chain ends at the owner. If K is even, it takes the extra chip.
    for (std::int64_t before = K / 2; before >= 0; --before) order.push_back((c + K - before) % K);
    const Number total = in_turn(terms, order);
    order.clear();
    for (std::int64_t behind = K - 1 - K / 2; behind >= 1; --behind)
      order.push_back((c + behind) % K);
    return order.empty() ? total : number.plus(total, number.hop(in_turn(terms, order)));
  }

  Number tree_sum(std::vector<Number> terms) const {
    for (std::size_t left = terms.size(); left > 1; left = (left + 1) / 2)
      for (std::size_t i = 0; i < left; i += 2)
        terms[i / 2] = i + 1 < left ? number.plus(terms[i], terms[i + 1]) : terms[i];
    return terms[0];
  }
};

}  // namespace shardproof::scalar
