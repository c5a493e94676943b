// Repeated slices: as counted by holding each slice against the earlier ones, element by element.
#include "golden/trace/verdict/detail/repeats.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <vector>

namespace shardproof::dump {
namespace {

using Slice = std::vector<std::uint32_t>;

std::vector<std::size_t> extents(const Tensor& t) { return {t.shape.begin(), t.shape.end()}; }

/// Calls see(index along `dim`, element) for each element in order.
template <class T, class See>
void each_of_dim(T& t, std::size_t dim, See&& see) {
  const std::vector<std::size_t> extent = extents(t);
  std::size_t inner = 1;
  for (std::size_t d = dim + 1; d < extent.size(); ++d) inner *= extent[d];
  for (std::size_t i = 0; i < t.data.size(); ++i) see(i / inner % extent[dim], t.data[i]);
}

std::vector<std::size_t> counted(const Tensor& t) {
  std::vector<std::size_t> repeats;
  for (std::size_t dim = 0; dim < t.shape.size(); ++dim) {
    std::vector<Slice> slices(extents(t)[dim]);
    each_of_dim(t, dim, [&](std::size_t i, float v) {
      slices[i].push_back(std::bit_cast<std::uint32_t>(v));
    });
    repeats.push_back(slices.size() - std::set<Slice>(slices.begin(), slices.end()).size());
  }
  return repeats;
}

/// Makes slices along a dim equal to others.
void repeat_some(Tensor& t, std::size_t dim) {
  std::vector<Slice> slices(extents(t)[dim]);
  each_of_dim(t, dim, [&](std::size_t i, float v) {
    slices[i].push_back(std::bit_cast<std::uint32_t>(v));
  });
  for (Slice& slice : slices)
    if (*rc::gen::inRange(0, 4) == 0) slice = *rc::gen::elementOf(slices);
  std::vector<std::size_t> next(slices.size(), 0);
  each_of_dim(t, dim,
              [&](std::size_t i, float& v) { v = std::bit_cast<float>(slices[i][next[i]++]); });
}

// Of few different numbers many slices share those that are compared first.
RC_GTEST_PROP(Repeats, AreThoseOfAllElements, ()) {
  const auto extent = [] { return std::int64_t{*rc::gen::inRange(1, 25)}; };
  Tensor t(*rc::gen::element(Shape{extent()}, Shape{extent(), extent()},
                             Shape{extent(), extent(), *rc::gen::inRange<std::int64_t>(1, 5)}));
  const auto numbers = *rc::gen::element(1, 2, 3, 1000);
  for (float& v : t.data) {
    const int number = *rc::gen::inRange(0, numbers);
    v = number == 2 ? -0.0F : static_cast<float>(number);
  }
  if (*rc::gen::arbitrary<bool>())
    repeat_some(t, *rc::gen::inRange<std::size_t>(0, t.shape.size()));
  RC_ASSERT(repeats_by_dim(t) == counted(t));
}

TEST(Repeats, OneElementAnywhereTellsItsSlicesFromTheOthers) {
  Tensor t({20, 30, 3});
  for (float& v : t.data) {
    v = 1.0F;
    EXPECT_EQ(repeats_by_dim(t), (std::vector<std::size_t>{18, 28, 1})) << &v - t.data.data();
    v = 0.0F;
  }
}

TEST(Repeats, AreBitsAndNotNumbers) {
  Tensor t({2, 1});
  EXPECT_EQ(repeats_by_dim(t), (std::vector<std::size_t>{1, 0}));
  t.data[1] = -0.0F;
  EXPECT_EQ(repeats_by_dim(t), (std::vector<std::size_t>{0, 0}));
}

}  // namespace
}  // namespace shardproof::dump
