// The kernels of sums, of each instruction set, against a loop over single numbers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/numeric/detail/kernels.h"
#include "weights/base/isa.h"

namespace shardproof {
namespace {

using State = std::vector<double>;

struct Factors {
  std::vector<std::vector<double>> center, worst, likely;  ///< by row
  std::vector<double> b;                                   ///< [terms, kSumsColumns]
  long first = 0, terms = 0;                               ///< of the rows
  bool radii = false, range = false;

  long rows() const { return static_cast<long>(center.size()); }

  State add(const Kernels& kernels, State state) const {
    const auto starts = [](const std::vector<std::vector<double>>& rows) {
      std::vector<const double*> all;
      for (const std::vector<double>& row : rows) all.push_back(row.data());
      return all;
    };
    const auto c = starts(center), w = starts(worst), l = starts(likely);
    kernels.sums(rows(), first, terms,
                 {c.data(), radii ? w.data() : nullptr, radii ? l.data() : nullptr}, b.data(),
                 state.data(), range);
    return state;
  }

  State plain(State state) const {
    for (std::size_t row = 0; row < center.size(); ++row)
      for (long column = 0; column < kSumsColumns; ++column) {
        const auto at = [&](long quantity) -> double& {
          return state[row * kSumsState +
                       static_cast<std::size_t>(quantity * kSumsColumns + column)];
        };
        for (long k = 0; k < terms; ++k) {
          const auto i = static_cast<std::size_t>(first + k);
          const double y = b[static_cast<std::size_t>(k * kSumsColumns + column)],
                       size = std::abs(y);
          const double of_radius = radii ? worst[row][i] : 0.0;
          at(0) = std::fma(center[row][i], y, at(0));
          at(1) = std::fma(std::abs(center[row][i]) + of_radius, size, at(1));
          if (range) at(2) = at(0) < at(2) ? at(0) : at(2);
          if (range) at(3) = at(0) > at(3) ? at(0) : at(3);
          if (radii) at(4) = std::fma(of_radius, size, at(4));
          if (radii) at(5) = std::fma(likely[row][i], size, at(5));
        }
      }
    return state;
  }
};

std::vector<const Kernels*> all_kernels() {
  std::vector<const Kernels*> all;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (!has_isa(isa)) continue;
    const ForcedIsa forced(isa);
    all.push_back(&kernels_in_use());
  }
  return all;
}

/// Equal bits; of NaN any.
bool equal_states(const State& a, const State& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::isnan(a[i]) && std::isnan(b[i])) &&
        !(a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i])))
      return false;
  return a.size() == b.size();
}

rc::Gen<double> odd_number() {
  return rc::gen::oneOf(
      rc::gen::map(rc::gen::inRange<int>(-1'000'000, 1'000'000), [](int v) { return v / 7.0; }),
      rc::gen::element(0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""), 1e200, -1e200, 0x1p-1070,
                       -0x1p-1070));
}

// From nothing or from what was added before, for any number of rows, terms and places to begin.
RC_GTEST_PROP(SumsKernel, IsALoopOverNumbers, ()) {
  Factors of;
  of.first = *rc::gen::inRange<long>(0, 4);
  of.terms = *rc::gen::inRange<long>(0, 12);
  of.radii = *rc::gen::arbitrary<bool>();
  of.range = *rc::gen::arbitrary<bool>();
  const auto width = static_cast<std::size_t>(of.first + of.terms);
  const auto row = rc::gen::container<std::vector<double>>(width, odd_number());
  const auto radius = rc::gen::map(rc::gen::container<std::vector<double>>(width, odd_number()),
                                   [](std::vector<double> of_row) {
                                     for (double& v : of_row) v = std::abs(v);
                                     return of_row;
                                   });
  for (long rows = *rc::gen::inRange<long>(0, 14); rows > 0; --rows) {
    of.center.push_back(*row);
    of.worst.push_back(*radius), of.likely.push_back(*radius);
  }
  of.b = *rc::gen::container<std::vector<double>>(static_cast<std::size_t>(of.terms * kSumsColumns),
                                                  odd_number());
  const State none(of.center.size() * kSumsState, 0.0);
  const State once = of.plain(none), twice = of.plain(once);
  for (const Kernels* const kernels : all_kernels()) {
    RC_ASSERT(equal_states(of.add(*kernels, none), once));
    RC_ASSERT(equal_states(of.add(*kernels, once), twice));
  }
}

// What is no number leaves the range where it was, from there on; what is not asked for stays.
TEST(SumsKernel, ANaNLeavesTheRange) {
  const double nan = std::nan("");
  for (const bool range : {false, true})
    for (const Kernels* const kernels : all_kernels()) {
      Factors of;
      of.center = {{1.0, -3.0, nan, 8.0}};
      of.terms = 4, of.range = range;
      of.b.assign(4 * kSumsColumns, 1.0);
      const State state = of.add(*kernels, State(kSumsState, 0.0));
      for (std::size_t column = 0; column < kSumsColumns; ++column) {
        EXPECT_TRUE(std::isnan(state[column]));
        EXPECT_TRUE(std::isnan(state[kSumsColumns + column]));
        EXPECT_EQ(state[2 * kSumsColumns + column], range ? -2.0 : 0.0);
        EXPECT_EQ(state[3 * kSumsColumns + column], range ? 1.0 : 0.0);
        EXPECT_EQ(state[4 * kSumsColumns + column], 0.0);
      }
    }
}

// A product that is too small for any number leaves a zero with its sign, which is no other number.
TEST(SumsKernel, AZeroOfEitherSignLeavesTheRange) {
  for (const double sign : {1.0, -1.0})
    for (const Kernels* const kernels : all_kernels()) {
      Factors of;
      of.center = {{sign * 0x1p-1070, 0.0}};
      of.terms = 2, of.range = true;
      of.b.assign(2 * kSumsColumns, 0x1p-1070);
      State before(kSumsState, 0.0);
      for (std::size_t i = 2 * kSumsColumns; i < 4 * kSumsColumns; ++i) before[i] = -sign * 0.0;
      const State state = of.add(*kernels, before);
      for (std::size_t i = 2 * kSumsColumns; i < 4 * kSumsColumns; ++i)
        EXPECT_EQ(std::signbit(state[i]), std::signbit(before[i])) << i;
    }
}

}  // namespace
}  // namespace shardproof
