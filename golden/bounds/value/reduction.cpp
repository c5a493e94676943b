#include "golden/bounds/value/reduction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>

namespace shardproof::bounds {
namespace {

using Numbers = std::vector<Number>;

class Reducing {
 public:
  Reducing(const DeclaredArithmetic& declared, NumberFormat wire)
      : declared_(declared), operations_(declared), wire_(wire) {}

  /// Sums over one ring of chips, as the hull of every reduction that the declaration allows.
  Number of_ring(const Numbers& terms) const {
    if (terms.size() == 1) return terms[0];
    Numbers sent;
    for (const Number& term : terms) sent.push_back(stored(term, wire_));
    std::optional<Number> all;
    const auto see = [&](const Number& sum) {
      const Number both = hull(sum, stored(sum, wire_));
      all = all ? hull(*all, both) : both;
    };
    // A chip may add its own partial sum as it is, or rounded as if it had been sent.
    for (const Numbers* own : std::array<const Numbers*, 2>{&terms, &sent}) {
      if (own == &sent && same(terms, sent)) break;
      each_sum(*own, sent, see);
    }
    return *all;
  }

 private:
  static bool same(const Numbers& a, const Numbers& b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](const Number& x, const Number& y) {
      return x.center == y.center && x.worst == y.worst && x.likely == y.likely;
    });
  }

  template <class See>
  void each_sum(const Numbers& own, const Numbers& sent, See&& see) const {
    const auto n = static_cast<int>(own.size());
    // A tree may round its partial sums once and add them in f32, which is a group.
    if (open(Reduction::group, 1) || declared_.reduction == Reduction::tree) group(own, sent, see);
    const bool of_rings = open(Reduction::ring, n - 1), of_arcs = open(Reduction::ring, n / 2);
    if (of_rings || of_arcs) {
      const Chains chains = chains_of(own, static_cast<std::size_t>(of_rings ? n - 1 : n / 2));
      if (of_rings) rings(own, chains, see);
      if (of_arcs) arcs(own, chains, see);
    }
    if (open(Reduction::tree, static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))))) {
      see(tree(own));
      see(tree(half_apart(own)));
    }
  }

  /// Returns whether a reduction is allowed that rounds a partial sum `roundings` times.
  bool open(Reduction kind, int roundings) const {
    if (declared_.reduction != Reduction::named) return declared_.reduction == kind;
    return declared_.wire_roundings == 0 || roundings <= declared_.wire_roundings;
  }

  /// Each chip adds what the others send to its own partial sum, in any order.
  template <class See>
  void group(const Numbers& own, const Numbers& sent, See&& see) const {
    const double n = static_cast<double>(own.size());
    for (std::size_t chip = 0; chip < own.size(); ++chip) {
      double center = 0.0, size = 0.0, worst = 0.0, likely = 0.0;
      for (std::size_t i = 0; i < own.size(); ++i) {
        const Number& t = i == chip ? own[i] : sent[i];
        center += t.center;
        size += std::abs(t.center) + t.worst;
        worst += t.worst, likely += t.likely;
      }
      const double of_sum = n * (operations_.unit() + 0x1p-52) * size;
      see({center, worst + of_sum, likely + of_sum});
    }
  }
  /// Sums that travel from chip to chip, rounded where they are sent: from each chip, in both
  /// directions, after each hop. Rings and arcs both end such chains.
  struct Chains {
    std::size_t chips, hops;
    Numbers up, down;  // [first chip, hops]

    /// Returns what chip `to` receives from the `count` chips before it, `step` apart.
    const Number& received(std::size_t to, std::size_t step, std::size_t count) const {
      const std::size_t first = (to + (chips - step) * count) % chips;
      return (step == 1 ? up : down)[first * hops + count - 1];
    }
  };
  Chains chains_of(const Numbers& own, std::size_t hops) const {
    const std::size_t n = own.size();
    Chains chains{n, hops, {}, {}};
    const auto walk = [&](std::size_t step, Numbers& all) {
      all.reserve(n * hops);
      for (std::size_t first = 0; first < n; ++first)
        for (std::size_t hop = 0; hop < hops; ++hop) {
          const Number& here = own[(first + step * hop) % n];
          all.push_back(stored(hop == 0 ? here : operations_.plus(all.back(), here), wire_));
        }
    };
    walk(1, chains.up);
    if (n > 2) walk(n - 1, chains.down);
    return chains;
  }
  /// One sum travels from chip to chip; each adds its own partial sum.
  template <class See>
  void rings(const Numbers& own, const Chains& chains, See&& see) const {
    const std::size_t n = own.size();
    for (const std::size_t step : {std::size_t{1}, n - 1}) {
      for (std::size_t to = 0; to < n; ++to)
        see(operations_.plus(chains.received(to, step, n - 1), own[to]));
      if (n == 2) break;  // both ways round are one
    }
  }
  /// Two sums travel in opposite directions and meet on a chip.
  template <class See>
  void arcs(const Numbers& own, const Chains& chains, See&& see) const {
    const std::size_t n = own.size();
    if (n < 3) return;
    for (std::size_t to = 0; to < n; ++to)
      for (const std::size_t step : {std::size_t{1}, n - 1}) {
        const Number& longer = chains.received(to, step, n / 2);
        const Number& shorter = chains.received(to, n - step, (n - 1) / 2);
        see(operations_.plus(operations_.plus(longer, own[to]), shorter));
        if (n % 2 == 0) see(operations_.plus(operations_.plus(shorter, own[to]), longer));
      }
  }
  /// Pairs neighbours; one of each pair is sent to the other.
  Number tree(Numbers own) const {
    while (own.size() > 1) {
      Numbers half;
      for (std::size_t i = 0; i + 1 < own.size(); i += 2) {
        const Number &a = own[i], &b = own[i + 1];
        half.push_back(
            hull(operations_.plus(a, stored(b, wire_)), operations_.plus(stored(a, wire_), b)));
      }
      if (own.size() % 2 != 0) half.push_back(own.back());
      own = std::move(half);
    }
    return own[0];
  }
  /// Returns the order in which a tree of neighbours pairs chips half the ring apart.
  static Numbers half_apart(const Numbers& terms) {
    const std::size_t n = terms.size();
    if (n % 2 != 0) return terms;
    Numbers even, odd;
    for (std::size_t i = 0; i < n; i += 2) even.push_back(terms[i]), odd.push_back(terms[i + 1]);
    Numbers order = half_apart(even);
    const Numbers rest = half_apart(odd);
    order.insert(order.end(), rest.begin(), rest.end());
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
void each_order(const Partials& of, const Reducing& by, std::optional<Number>& found) {
  if (of.extents.empty()) {
    found = found ? hull(*found, of.numbers[0]) : of.numbers[0];
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

Number reduced(const Partials& partials, const DeclaredArithmetic& declared, NumberFormat wire) {
  const Reducing by(declared, wire);
  std::optional<Number> found;
  if (partials.extents.size() > 1) each_order(partials, by, found);
  // A single ring over all chips follows one of the orders of the axes.
  std::vector<std::size_t> axes(partials.extents.size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  do {
    const Number at_once = by.of_ring(in_order(partials, axes));
    found = found ? hull(*found, at_once) : at_once;
  } while (std::next_permutation(axes.begin(), axes.end()));
  return *found;
}

}  // namespace shardproof::bounds
