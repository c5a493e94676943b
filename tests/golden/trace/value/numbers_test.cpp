// Numbers of an array and of one's own, and places of a block and one by one.
#include "golden/trace/value/numbers.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "tests/golden/trace/read/stored_elements.h"

namespace shardproof::dump {
namespace {

template <class T>
void expect_part(NumberFormat encoding, const std::vector<T>& elements) {
  const StoredArray array = stored(encoding, elements);
  const Numbers some(array, 2, 3);
  ASSERT_EQ(some.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(some[i], array.at(2 + i));
  EXPECT_EQ(some.f32_bytes() != nullptr, encoding == NumberFormat::f32);
  Numbers copy = some;
  copy.own()[1] = 11.0;
  EXPECT_EQ(copy[0], some[0]);
  EXPECT_EQ(copy[1], 11.0);
  EXPECT_EQ(some[1], array.at(3));
  EXPECT_EQ(copy.size(), 3U);
  EXPECT_EQ(copy.f32_bytes(), nullptr);
  copy.clear();
  EXPECT_TRUE(copy.empty());
}

TEST(Numbers, ArePartsOfArraysOfEachEncoding) {
  expect_part<float>(NumberFormat::f32, {1, 2, 3.5F, -0.0F, 5, 6});
  expect_part<double>(NumberFormat::f64, {1, 2, 3.1, -4, 5, 6});
  expect_part<std::uint16_t>(NumberFormat::bf16, {1, 2, 0x3f80, 0x4000, 0xc000, 6});
  expect_part<std::uint16_t>(NumberFormat::f16, {1, 2, 0x3c00, 0x4000, 0xc000, 6});
  expect_part<std::int8_t>(NumberFormat::int8, {1, 2, 3, -4, 5, 6});
  expect_part<std::int64_t>(NumberFormat::int64, {1, 2, 3, -4, 5, 6});
  const StoredArray nan =
      stored<float>(NumberFormat::f32, {std::numeric_limits<float>::quiet_NaN()});
  EXPECT_TRUE(std::isnan(Numbers(nan, 0, 1)[0]));
  EXPECT_EQ(Numbers(std::vector<double>{4, 5})[1], 5.0);
}

// A block's places are those of judged_elements, in any layout, on every chip.
RC_GTEST_PROP(Places, OfABlockAreThoseOfItsElements, ()) {
  const auto size = [] { return *rc::gen::inRange(1, 4); };
  const Torus torus(size(), size(), size());
  const Layout layout = Layout::parse(
      *rc::gen::element<std::string>("B_xL_yE_z", "BLE", "BL_zyxE", "B_yLE_x", "BLE_xyz"));
  Shape shape;
  for (const Layout::Dim& dim : layout.dims()) shape.push_back(torus.size(dim.axes) * size());
  const auto blocks = std::make_shared<const JudgedBlocks>(layout, shape, torus);
  for (int chip = 0; chip < torus.chips(); ++chip) {
    std::vector<std::int64_t> own;
    judged_elements(layout, shape, torus, chip, [&](std::int64_t, std::int64_t global) {
      own.push_back(global);
      return false;
    });
    const Places block(blocks, chip);
    RC_ASSERT(block.size() == own.size());
    RC_ASSERT(block.of_block());
    RC_ASSERT(!Places(own).of_block());
    RC_ASSERT(block == Places(own));
    std::vector<std::pair<std::size_t, std::int64_t>> seen;
    block.each([&](std::size_t i, std::int64_t place) { seen.emplace_back(i, place); });
    RC_ASSERT(seen.size() == own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      RC_ASSERT(block[i] == own[i]);
      RC_ASSERT(seen[i] == std::pair(i, own[i]));
    }
    const auto last = *rc::gen::inRange<std::size_t>(0, own.size() + 1);
    const auto first = *rc::gen::inRange<std::size_t>(0, last + 1);
    for (const Places& places : {block, Places(own)}) {
      seen.clear();
      places.each_run(first, last, [&](std::size_t i, std::int64_t place, std::size_t count) {
        for (std::size_t j = 0; j < count; ++j)
          seen.emplace_back(i + j, place + static_cast<std::int64_t>(j));
      });
      RC_ASSERT(seen.size() == last - first);
      for (std::size_t i = 0; i < seen.size(); ++i)
        RC_ASSERT(seen[i] == std::pair(first + i, own[first + i]));
    }
    Places changed = block;
    RC_ASSERT(changed.own() == own);
    changed.own()[0] = own[0] + 1;
    RC_ASSERT(!(changed == block));
    RC_ASSERT(Places(blocks, chip) == block);
    if (own[0] != blocks->first(0)) RC_ASSERT(!(Places(blocks, 0) == block));
  }
}

TEST(Places, LeavePaddingOut) {
  const Places places({4, Places::kNone, 2});
  std::vector<std::pair<std::size_t, std::int64_t>> seen;
  places.each([&](std::size_t i, std::int64_t place) { seen.emplace_back(i, place); });
  EXPECT_EQ(seen, (std::vector<std::pair<std::size_t, std::int64_t>>{{0, 4}, {2, 2}}));
}

}  // namespace
}  // namespace shardproof::dump
