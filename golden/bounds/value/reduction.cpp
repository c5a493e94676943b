#include "golden/bounds/value/reduction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

namespace shardproof::bounds {
namespace {

using Numbers = std::vector<Lanes>;

class Reducing {
 public:
  Reducing(const DeclaredArithmetic& declared, NumberFormat wire)
      : declared_(declared), operations_(declared), wire_(wire) {}

  /// Sums over one ring of chips, as the hull of every reduction that the declaration allows.
  Lanes of_ring(const Numbers& terms) const {
    if (terms.size() == 1) return terms[0];
    Numbers sent;
    sent.reserve(terms.size());
    for (const Lanes& term : terms) sent.push_back(stored(term, wire_));
    LaneHull all;
    // A chip may add its own partial sum as it is, or rounded as if it had been sent.
    each_sum(terms, sent, all);
    if (terms != sent) each_sum(sent, sent, all);
    all.include_stored(wire_);
    return all.lanes();
  }

 private:
  void each_sum(const Numbers& own, const Numbers& sent, LaneHull& all) const {
    const auto n = static_cast<int>(own.size());
    // A tree may round its partial sums once and add them in f32, which is a group.
    if (open(Reduction::group, 1) || declared_.reduction == Reduction::tree) group(own, sent, all);
    const bool of_rings = open(Reduction::ring, n - 1), of_arcs = open(Reduction::ring, n / 2);
    if (of_rings || of_arcs) {
      const Chains chains =
          chains_of(own, sent, static_cast<std::size_t>(of_rings ? n - 1 : n / 2));
      if (of_rings) rings(own, chains, all);
      if (of_arcs) arcs(own, chains, all);
    }
    if (open(Reduction::tree, static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))))) {
      all.include(tree(own));
      all.include(tree(half_apart(own)));
    }
  }

  /// Returns whether a reduction is allowed that rounds a partial sum `roundings` times.
  bool open(Reduction kind, int roundings) const {
    if (declared_.reduction != Reduction::named) return declared_.reduction == kind;
    return declared_.wire_roundings == 0 || roundings <= declared_.wire_roundings;
  }

  /// Each chip adds what the others send to its own partial sum, in any order.
  void group(const Numbers& own, const Numbers& sent, LaneHull& all) const {
    const double of_sum = static_cast<double>(own.size()) * (operations_.unit() + 0x1p-52);
    for (std::size_t chip = 0; chip < own.size(); ++chip) {
      Lanes sum;
      std::array<double, kLanes> size{};
      for (std::size_t i = 0; i < own.size(); ++i) {
        const Lanes& t = i == chip ? own[i] : sent[i];
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
          sum.center[lane] += t.center[lane];
          sum.worst[lane] += t.worst[lane], sum.likely[lane] += t.likely[lane];
          size[lane] += std::abs(t.center[lane]) + t.worst[lane];
        }
      }
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        sum.worst[lane] += of_sum * size[lane];
        sum.likely[lane] += of_sum * size[lane];
      }
      all.include(sum);
    }
  }
  /// Sums that travel from chip to chip, rounded where they are sent: from each chip, in both
  /// directions, after each hop. Rings and arcs both end such chains.
  struct Chains {
    std::size_t chips, hops;
    Numbers up, down;  // [first chip, hops]

    /// Returns what chip `to` receives from the `count` chips before it, `step` apart.
    const Lanes& received(std::size_t to, std::size_t step, std::size_t count) const {
      const std::size_t first = (to + (chips - step) * count) % chips;
      return (step == 1 ? up : down)[first * hops + count - 1];
    }
  };
  Chains chains_of(const Numbers& own, const Numbers& sent, std::size_t hops) const {
    const std::size_t n = own.size();
    Chains chains{n, hops, {}, {}};
    const auto walk = [&](std::size_t step, Numbers& all) {
      all.reserve(n * hops);
      for (std::size_t first = 0; first < n; ++first)
        for (std::size_t hop = 0; hop < hops; ++hop) {
          const std::size_t chip = (first + step * hop) % n;
          all.push_back(hop == 0 ? sent[chip]
                                 : stored(plus(operations_, all.back(), own[chip]), wire_));
        }
    };
    walk(1, chains.up);
    if (n > 2) walk(n - 1, chains.down);
    return chains;
  }
  /// One sum travels from chip to chip; each adds its own partial sum.
  void rings(const Numbers& own, const Chains& chains, LaneHull& all) const {
    const std::size_t n = own.size();
    for (const std::size_t step : {std::size_t{1}, n - 1}) {
      for (std::size_t to = 0; to < n; ++to)
        all.include(plus(operations_, chains.received(to, step, n - 1), own[to]));
      if (n == 2) break;  // both ways round are one
    }
  }
  /// Two sums travel in opposite directions and meet on a chip.
  void arcs(const Numbers& own, const Chains& chains, LaneHull& all) const {
    const std::size_t n = own.size();
    if (n < 3) return;
    for (std::size_t to = 0; to < n; ++to)
      for (const std::size_t step : {std::size_t{1}, n - 1}) {
        const Lanes& longer = chains.received(to, step, n / 2);
        const Lanes& shorter = chains.received(to, n - step, (n - 1) / 2);
        all.include(plus(operations_, plus(operations_, longer, own[to]), shorter));
        if (n % 2 == 0) all.include(plus(operations_, plus(operations_, shorter, own[to]), longer));
      }
  }
  /// Pairs neighbours; one of each pair is sent to the other.
  Lanes tree(Numbers own) const {
    for (std::size_t n = own.size(); n > 1; n = (n + 1) / 2)
      for (std::size_t i = 0; i < n; i += 2) {
        if (i + 1 == n) {
          own[i / 2] = own[i];
          break;
        }
        const Lanes &a = own[i], &b = own[i + 1];
        LaneHull both;
        both.include(plus(operations_, a, stored(b, wire_)));
        both.include(plus(operations_, stored(a, wire_), b));
        own[i / 2] = both.lanes();
      }
    return own[0];
  }
  /// Returns the terms in the order in which a tree of neighbours pairs chips half the ring apart:
  /// as long as the count is even, those at even places come before the others.
  static Numbers half_apart(const Numbers& terms) {
    Numbers order = terms, next = terms;
    for (std::size_t part = terms.size(); part > 2 && part % 2 == 0; part /= 2) {
      for (std::size_t first = 0; first < terms.size(); first += part)
        for (std::size_t i = 0; i < part; ++i)
          next[first + i / 2 + (i % 2) * (part / 2)] = order[first + i];
      std::swap(order, next);
    }
    return order;
  }

  const DeclaredArithmetic& declared_;
  Operations operations_;
  NumberFormat wire_;
};

/// Sums over one axis; the result has the remaining axes.
Partials over_axis(const Partials& of, std::size_t axis, const Reducing& by) {
  std::size_t inner = 1;
  for (std::size_t d = axis + 1; d < of.extents.size(); ++d)
    inner *= static_cast<std::size_t>(of.extents[d]);
  const auto n = static_cast<std::size_t>(of.extents[axis]);
  Partials left{of.extents, {}};
  left.extents.erase(left.extents.begin() + static_cast<std::ptrdiff_t>(axis));
  for (std::size_t outer = 0; outer < of.numbers.size() / (n * inner); ++outer)
    for (std::size_t i = 0; i < inner; ++i) {
      Numbers ring;
      for (std::size_t r = 0; r < n; ++r) ring.push_back(of.numbers[(outer * n + r) * inner + i]);
      left.numbers.push_back(by.of_ring(ring));
    }
  return left;
}

/// Sums over one axis after another, in every order of the axes.
void each_order(const Partials& of, const Reducing& by, LaneHull& found) {
  if (of.extents.empty()) {
    found.include(of.numbers[0]);
    return;
  }
  for (std::size_t axis = 0; axis < of.extents.size(); ++axis)
    each_order(over_axis(of, axis, by), by, found);
}

/// Returns the partial sums with their axes permuted.
Numbers in_order(const Partials& of, const std::vector<std::size_t>& axes) {
  Numbers numbers;
  for (std::size_t i = 0; i < of.numbers.size(); ++i) {
    std::vector<std::size_t> index(axes.size());
    std::size_t rest = i;
    for (std::size_t a = axes.size(); a-- > 0;
         rest /= static_cast<std::size_t>(of.extents[axes[a]]))
      index[axes[a]] = rest % static_cast<std::size_t>(of.extents[axes[a]]);
    std::size_t from = 0;
    for (std::size_t d = 0; d < index.size(); ++d)
      from = from * static_cast<std::size_t>(of.extents[d]) + index[d];
    numbers.push_back(of.numbers[from]);
  }
  return numbers;
}

}  // namespace

Lanes reduced(const Partials& partials, const DeclaredArithmetic& declared, NumberFormat wire) {
  const Reducing by(declared, wire);
  LaneHull found;
  if (partials.extents.size() > 1) each_order(partials, by, found);
  // A single ring over all chips follows one of the orders of the axes.
  std::vector<std::size_t> axes(partials.extents.size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  do {
    found.include(by.of_ring(in_order(partials, axes)));
  } while (std::next_permutation(axes.begin(), axes.end()));
  return found.lanes();
}

}  // namespace shardproof::bounds
