// Reductions of partial sums that are sent with fewer digits: what every named one comes to, made
// here in f32 chip by chip, is inside of the hull; a partial sum that is wrong, missing or counted
// twice is outside.
#include "golden/bounds/value/reduction.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace shardproof::bounds {
namespace {

using Floats = std::vector<float>;

float narrowed(float v, NumberFormat wire) {
  return static_cast<float>(nearest(static_cast<double>(v), wire));
}

/// A reduction onto one chip of a ring; `own` are the partial sums as their chips have them.
struct Named {
  std::string name;
  Reduction kind;
  std::function<float(const Floats& own, std::size_t to, NumberFormat wire)> sum;
};

/// What chip `to` receives over `hops` hops from the chips that lie `step` apart.
float received(const Floats& own, std::size_t to, int step, std::size_t hops, NumberFormat wire) {
  const auto n = static_cast<int>(own.size());
  const auto chip = [&](std::size_t away) {
    const int place = static_cast<int>(to) - step * static_cast<int>(away);
    return static_cast<std::size_t>((place % n + n) % n);
  };
  float sum = narrowed(own[chip(hops)], wire);
  for (std::size_t away = hops - 1; away > 0; --away) sum = narrowed(sum + own[chip(away)], wire);
  return sum;
}

float ring(const Floats& own, std::size_t to, int step, NumberFormat wire) {
  return received(own, to, step, own.size() - 1, wire) + own[to];
}

float arcs(const Floats& own, std::size_t to, std::size_t before, int step, NumberFormat wire) {
  const std::size_t after = own.size() - 1 - before;
  const float sum = before > 0 ? received(own, to, step, before, wire) + own[to] : own[to];
  return after > 0 ? sum + received(own, to, -step, after, wire) : sum;
}

/// Neighbours pair up, or chips half the ring apart; of each pair one sends.
float tree(const Floats& own, bool far_first, bool left_sends, NumberFormat wire) {
  Floats sums = own;
  while (sums.size() > 1) {
    const std::size_t half = (sums.size() + 1) / 2;
    Floats next;
    for (std::size_t i = 0; i < half; ++i) {
      const std::size_t a = far_first ? i : 2 * i, b = far_first ? i + half : 2 * i + 1;
      if (b >= sums.size())
        next.push_back(sums[a]);
      else if (left_sends)
        next.push_back(narrowed(sums[a], wire) + sums[b]);
      else
        next.push_back(sums[a] + narrowed(sums[b], wire));
    }
    sums = next;
  }
  return sums[0];
}

float group(const Floats& own, std::size_t to, bool backwards, NumberFormat wire) {
  float sum = 0.0F;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::size_t chip = backwards ? own.size() - 1 - i : i;
    sum += chip == to ? own[chip] : narrowed(own[chip], wire);
  }
  return sum;
}

std::vector<Named> named() {
  std::vector<Named> all;
  const auto add = [&](const std::string& name, int way, Reduction kind, auto sum) {
    all.push_back({fmt::format("{} {}", name, way), kind, sum});
  };
  for (const int step : {1, -1}) {
    add("ring", step, Reduction::ring,
        [=](const Floats& p, std::size_t to, NumberFormat w) { return ring(p, to, step, w); });
    add("arcs, the longer first,", step, Reduction::ring,
        [=](const Floats& p, std::size_t to, NumberFormat w) {
          return arcs(p, to, p.size() / 2, step, w);
        });
    add("arcs, the shorter first,", step, Reduction::ring,
        [=](const Floats& p, std::size_t to, NumberFormat w) {
          return arcs(p, to, (p.size() - 1) / 2, step, w);
        });
  }
  for (const bool left : {false, true}) {
    add("tree of neighbours", left, Reduction::tree,
        [=](const Floats& p, std::size_t, NumberFormat w) { return tree(p, false, left, w); });
    add("tree of halves", left, Reduction::tree, [=](const Floats& p, std::size_t, NumberFormat w) {
      return tree(p, std::has_single_bit(p.size()), left, w);
    });
    add("group", left, Reduction::group,
        [=](const Floats& p, std::size_t to, NumberFormat w) { return group(p, to, left, w); });
  }
  return all;
}

Floats drawn(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> gauss;
  Floats p(n);
  for (float& v : p) v = gauss(random);
  if (seed % 4 == 1) p.front() *= 64;  // one chip's is the most, the first's or the last's
  if (seed % 4 == 2) p.back() *= 64;
  if (seed % 4 == 3)  // the order of sums decides: large ones cancel
    for (std::size_t i = 0; i + 1 < n; i += 2) p[i + 1] = -(p[i] *= 0x1p12F);
  return p;
}

using Numbers = std::vector<Number>;

/// The sum of an element's partial sums, which stand in one lane, beside those of other elements.
Number reduced_in(std::size_t lane, const Numbers& p, const std::vector<int>& extents,
                  const DeclaredArithmetic& by, NumberFormat wire) {
  Partials partials{extents, {}};
  for (std::size_t chip = 0; chip < p.size(); ++chip) {
    Lanes& lanes = partials.numbers.emplace_back();
    const auto sign = chip % 2 == 0 ? 1.0 : -1.0;
    for (std::size_t other = 0; other < kLanes; ++other)
      lanes.set(other, other % 3 == 2 ? Number{0.0, kInfinity, kInfinity}
                                      : Number{sign * std::ldexp(1.1, static_cast<int>(other)),
                                               std::ldexp(1.0, static_cast<int>(chip) - 9), 0.0});
    lanes.set(lane, p[chip]);
  }
  return reduced(partials, by, wire).number(lane);
}

Numbers numbers_of(const Floats& p) {
  Numbers of;
  for (const float v : p) of.push_back({static_cast<double>(v), 0.0, 0.0});
  return of;
}

/// In a lane that the partial sums choose.
Number reduced_of(const Floats& p, const std::vector<int>& extents, const DeclaredArithmetic& by,
                  NumberFormat wire) {
  const auto lane = static_cast<std::size_t>(std::bit_cast<std::uint32_t>(p[0]) >> 3U) % kLanes;
  return reduced_in(lane, numbers_of(p), extents, by, wire);
}

bool inside(float v, const Number& of) {
  const Interval in = of.interval();
  return in.low <= static_cast<double>(v) && static_cast<double>(v) <= in.high;
}

// Every chip's result, of every kind, with what chips add of their own rounded or as it is, and
// with the result rounded or as it is.
TEST(Reduced, HoldsEachNamedReduction) {
  for (const NumberFormat wire : {NumberFormat::bf16, NumberFormat::f16, NumberFormat::f32})
    for (const std::size_t n : {2U, 3U, 4U, 5U, 6U, 8U, 16U})
      for (unsigned seed = 0; seed < 12; ++seed) {
        const Floats p = drawn(n, seed);
        Floats rounded = p;
        for (float& v : rounded) v = narrowed(v, wire);
        for (const Named& kind : named()) {
          DeclaredArithmetic pinned;
          pinned.reduction = kind.kind;
          const std::vector<int> one{static_cast<int>(n)};
          const Number of_all = reduced_of(p, one, {}, wire);
          const Number of_kind = reduced_of(p, one, pinned, wire);
          for (std::size_t to = 0; to < n; ++to)
            for (const Floats* own : {&std::as_const(p), &std::as_const(rounded)}) {
              const float sum = kind.sum(*own, to, wire);
              for (const float v : {sum, narrowed(sum, wire)}) {
                EXPECT_TRUE(inside(v, of_all)) << kind.name << " of " << n << " on " << to;
                EXPECT_TRUE(inside(v, of_kind)) << kind.name << " of " << n << " on " << to;
              }
            }
        }
      }
}

/// A reduction over the inner axis onto its last chip, and then over the outer one onto its first.
float one_after_another(const Named& kind, const Floats& p, int Y, int Z, bool y_first) {
  const auto over = [&](const Floats& own, std::size_t to) {
    return own.size() > 1 ? kind.sum(own, to, NumberFormat::bf16) : own[0];
  };
  const int outer = y_first ? Z : Y, inner = y_first ? Y : Z;
  Floats sums;
  for (int o = 0; o < outer; ++o) {
    Floats chips;
    for (int i = 0; i < inner; ++i)
      chips.push_back(p[static_cast<std::size_t>(y_first ? i * Z + o : o * Z + i)]);
    sums.push_back(over(chips, chips.size() - 1));
  }
  return over(sums, 0);
}

// Over two axes, one after the other in either order, and all at once; also where the kind is
// pinned, whose hull is narrower.
TEST(Reduced, HoldsOneAxisAfterAnother) {
  for (const auto& [Y, Z] : {std::pair{2, 3}, {3, 2}, {4, 2}, {1, 5}})
    for (unsigned seed = 0; seed < 12; ++seed)
      for (const Named& kind : named()) {
        const auto n = static_cast<std::size_t>(Y * Z);
        const Floats p = drawn(n, seed);
        DeclaredArithmetic pinned;
        pinned.reduction = kind.kind;
        for (const DeclaredArithmetic& by : {DeclaredArithmetic(), pinned}) {
          const Number of = reduced_of(p, {Y, Z}, by, NumberFormat::bf16);
          for (const bool y_first : {false, true})
            EXPECT_TRUE(inside(one_after_another(kind, p, Y, Z, y_first), of))
                << kind.name << " of " << Y << "x" << Z << " y first: " << y_first;
          EXPECT_TRUE(inside(kind.sum(p, n - 1, NumberFormat::bf16), of)) << Y << "x" << Z;
        }
      }
}

// At each chip: a partial sum that is left out, counted twice or has the other sign, where that is
// more than all roundings of two reductions come to.
TEST(Reduced, FaultsOfEachChipAreOutside) {
  int seen = 0, all = 0;
  for (const std::size_t n : {2U, 3U, 8U})
    for (unsigned seed = 0; seed < 40; ++seed)
      for (std::size_t chip = 0; chip < n; ++chip)
        for (const float times : {0.0F, 2.0F, -1.0F}) {
          const Floats right = drawn(n, seed);
          Floats wrong = right;
          wrong[chip] *= times;
          const Number of = reduced_of(right, {static_cast<int>(n)}, {}, NumberFormat::bf16);
          float size = 0.0F;
          for (const float v : right) size += std::abs(v);
          const float roundings = 2.0F * static_cast<float>(n) * 0x1p-8F * size;
          if (std::abs(wrong[chip] - right[chip]) <= roundings) continue;
          ++all;
          seen += inside(ring(wrong, 0, 1, NumberFormat::bf16), of) ? 0 : 1;
        }
  EXPECT_EQ(seen, all);
  EXPECT_GT(all, 90);
}

// `wire` leaves out what rounds more often: of 8 chips a ring rounds 7 times, arcs 4 times, a tree
// 3 times, a group once.
TEST(Reduced, GoesByTheRoundingsThatAreDeclared) {
  const Floats p = drawn(8, 4);
  const auto width = [&](int roundings) {
    DeclaredArithmetic by;
    by.wire_roundings = roundings;
    return reduced_of(p, {8}, by, NumberFormat::bf16).worst;
  };
  EXPECT_EQ(width(1), width(2));
  EXPECT_LT(width(2), width(3));
  EXPECT_LT(width(3), width(4));
  EXPECT_EQ(width(4), width(6));
  EXPECT_LT(width(4), width(7));
  EXPECT_EQ(width(7), width(0));
}

// What a pinned kind excludes: of 8 chips a ring's rounding is outside of a group's in some sums.
TEST(Reduced, OfOneKindExcludesOthers) {
  int outside = 0;
  for (unsigned seed = 0; seed < 40; seed += 4) {
    const Floats p = drawn(8, seed);
    DeclaredArithmetic of_group;
    of_group.reduction = Reduction::group;
    outside +=
        inside(ring(p, 3, 1, NumberFormat::bf16), reduced_of(p, {8}, of_group, NumberFormat::bf16))
            ? 0
            : 1;
  }
  EXPECT_GT(outside, 0);
}

// A partial sum of which nothing is known leaves nothing known of the sum, in every lane.
TEST(Reduced, OfTheUnknownIsUnknown) {
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    for (const std::size_t chip : {std::size_t{0}, std::size_t{2}}) {
      Numbers p = numbers_of({1.0F, 2.0F, 3.0F});
      p[chip] = {0.0, kInfinity, kInfinity};
      const Number of = reduced_in(lane, p, {3}, {}, NumberFormat::bf16);
      EXPECT_EQ(of.worst, kInfinity);
      EXPECT_EQ(of.likely, kInfinity);
    }
}

// A sum does not depend on its lane, nor on what stands in the others: of exact partial sums, of
// some with radii, of infinite, unknown and zero ones, of such that overflow the format.
TEST(Reduced, IsTheSameInEveryLane) {
  // Among them the largest f16 and bf16, of which two overflow, and a subnormal one.
  const double special[] = {kInfinity,  -kInfinity, 0.0,      -0.0,
                            0x1.ffcp15, 0x1.fep127, 0x1p-133, std::nan("")};
  for (const NumberFormat wire : {NumberFormat::bf16, NumberFormat::f16, NumberFormat::f32})
    for (const std::vector<int>& extents : {std::vector<int>{2}, {3}, {2, 2}, {1, 3, 2}, {2, 2, 2}})
      for (unsigned seed = 0; seed < 24; ++seed) {
        std::size_t chips = 1;
        for (const int extent : extents) chips *= static_cast<std::size_t>(extent);
        Numbers p = numbers_of(drawn(chips, seed));
        std::mt19937 random(seed);
        for (Number& v : p) {
          if (random() % 2 == 0) v.worst = std::abs(v.center) * 0x1p-10, v.likely = v.worst / 2;
          if (random() % 16 == 0) v.worst = v.likely = kInfinity;
          if (random() % 8 == 0) v.center = special[random() % std::size(special)];
        }
        const Number first = reduced_in(0, p, extents, {}, wire);
        for (std::size_t lane = 1; lane < kLanes; ++lane) {
          const Number other = reduced_in(lane, p, extents, {}, wire);
          EXPECT_EQ(first.center, other.center) << seed << ' ' << lane;
          EXPECT_EQ(first.worst, other.worst) << seed << ' ' << lane;
          EXPECT_EQ(first.likely, other.likely) << seed << ' ' << lane;
        }
      }
}

}  // namespace
}  // namespace shardproof::bounds
