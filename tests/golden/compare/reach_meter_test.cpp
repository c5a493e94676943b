// How far a difference reaches, against tables by hand and a count over all chips.
#include "golden/compare/reach_meter.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "golden/compare/comparison.h"
#include "tests/engine/numbers.h"
#include "tests/engine/random_layout.h"

namespace shardproof {
namespace {

ExpectedBits expected_of(const Tensor& tensor) {
  return {.shape = tensor.shape, .bits = Words<std::uint32_t>::of(tensor.data), .integer = false};
}

Tensor counting(const Shape& shape) {
  Tensor t(shape);
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<float>(i) + 1.0F;
  return t;
}

/// B_yE_x of [2,4] on 2x2x2 chips: each block of 1x2 on two chips, which differ in z.
struct Small {
  Torus torus{2, 2, 2};
  Tensor tensor = counting({2, 4});
  Layout layout = Layout::parse("B_yE_x");
  Sharded value = shard(tensor, layout, torus);

  float& at(int chip, std::size_t i) { return value.f32_of(chip)[i]; }
  Mismatch mismatch() const {
    const Comparison c = compare(expected_of(tensor), layout, value);
    EXPECT_TRUE(c.mismatch);
    EXPECT_TRUE(c.mismatch->reach);
    return *c.mismatch;
  }
};

TEST(Reach, OfNothingIsNone) {
  const Small s;
  const Comparison c = compare(expected_of(s.tensor), s.layout, s.value);
  EXPECT_FALSE(c.mismatch);
  EXPECT_EQ(c.elements, 16);
}

TEST(Reach, OfOneReplica) {
  Small s;
  s.at(7, 1) = 9.5F;  // chip (1,1,1): row 1, columns 2 and 3: 7, 8
  const Mismatch m = s.mismatch();
  EXPECT_EQ(m.index, (Shape{1, 3}));
  EXPECT_EQ(m.reach->extent(), "on 1 of 8 chips, 1 of 8 elements, replicas differ");
  EXPECT_EQ(m.reach->worst(),
            "chip (1,1,1) at [1,3]: expected 8 (0x41000000), got 9.5 (0x41180000)");
}

TEST(Reach, OfBothReplicasAndTheWorstElement) {
  Small s;
  for (int chip : {0, 1}) s.at(chip, 0) = 0.0F;      // 1 apart, the first
  for (int chip : {6, 7}) s.at(chip, 0) = -1000.0F;  // 1007 apart
  const Mismatch m = s.mismatch();
  EXPECT_EQ(m.index, (Shape{0, 0}));
  EXPECT_EQ(m.reach->extent(), "on 4 of 8 chips, 2 of 8 elements, replicas agree");
  EXPECT_EQ(m.reach->worst_chip, "(1,1,0)");
  EXPECT_EQ(m.reach->worst_index, (Shape{1, 2}));
}

TEST(Reach, CountsEveryKindOfWrongElement) {
  // NaN and infinities are the worst; -0 for +0 is wrong, and no distance at all.
  const float inf = std::numeric_limits<float>::infinity();
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), inf, -inf}) {
    Small s;
    s.at(0, 0) = 3e38F;
    s.at(5, 1) = bad;
    const Mismatch m = s.mismatch();
    EXPECT_EQ(m.reach->elements, 2) << bad;
    EXPECT_EQ(m.reach->worst_chip, "(1,0,1)") << bad;
  }
  Small s;
  s.tensor.data[0] = 0.0F;
  s.at(0, 0) = -0.0F;
  s.at(1, 0) = 0.0F;
  const Mismatch m = s.mismatch();
  EXPECT_EQ(m.reach->extent(), "on 1 of 8 chips, 1 of 8 elements, replicas differ");
  EXPECT_EQ(m.reach->worst_index, (Shape{0, 0}));
}

TEST(Reach, HasNoneWhereChipsHoldTooMuchOrTooLittle) {
  for (const char* held : {"B_yzE_x", "B_yE", "BE_x", "BE"}) {
    Small s;
    s.tensor = counting({4, 4});
    s.value = shard(s.tensor, Layout::parse(held), s.torus);
    const Comparison c = compare(expected_of(s.tensor), s.layout, s.value);
    ASSERT_TRUE(c.mismatch);
    EXPECT_FALSE(c.mismatch->reach);
    EXPECT_EQ(c.mismatch->chip, "(0,0,0)");
    EXPECT_EQ(c.mismatch->expected, "4 elements on the chip");
  }
}

TEST(Reach, WithoutReplicasSaysSo) {
  Small s;
  s.layout = Layout::parse("B_zyE_x");
  s.tensor = counting({4, 4});
  s.value = shard(s.tensor, s.layout, s.torus);
  s.at(3, 1) = -1.0F;
  EXPECT_EQ(s.mismatch().reach->extent(), "on 1 of 8 chips, 1 of 16 elements, no replicas");
}

TEST(Reach, LargeNumbersAreGrouped) {
  Reach r;
  r.of_chips = r.chips = 1;
  r.elements = 999;
  r.of_elements = 1234567;
  EXPECT_EQ(r.extent(), "on 1 of 1 chip, 999 of 1,234,567 elements, no replicas");
  r.elements = 1000;
  EXPECT_NE(r.extent().find(" 1,000 of"), std::string::npos);
}

RC_GTEST_PROP(Reach, IsTheCountOverAllChips, ()) {
  const auto size = [] { return *rc::gen::element(1, 2, 3); };
  const Torus torus(size(), size(), size());
  const std::vector<Axes> bins = draw_bins(3);
  const Layout layout({{'B', bins[1]}, {'E', bins[2]}}, Axes());
  const Tensor tensor = counting({torus.chips() * *rc::gen::inRange(1, 3), torus.chips()});
  Sharded value = shard(tensor, layout, torus);
  const auto chips = numbers_of(value);
  const int faults = *rc::gen::inRange(1, 6);
  for (int f = 0; f < faults; ++f) {
    const auto chip = chips[*rc::gen::inRange<std::size_t>(0, chips.size())];
    chip[*rc::gen::inRange<std::size_t>(0, chip.size())] = static_cast<float>(-f - 1);
  }
  // By the global index that the undamaged value holds as its number.
  const Sharded right = shard(tensor, layout, torus);
  std::set<float> wrong;
  std::set<std::size_t> wrong_chips;
  std::map<float, std::set<float>> held;
  std::map<float, int> copies;
  double most = 0.0;
  for (std::size_t c = 0; c < chips.size(); ++c)
    for (std::size_t i = 0; i < chips[c].size(); ++i) {
      const float want = right.f32()[c][i];
      held[want].insert(chips[c][i]);
      ++copies[want];
      if (chips[c][i] == want) continue;
      wrong.insert(want);
      wrong_chips.insert(c);
      most = std::max(most, std::abs(static_cast<double>(chips[c][i]) - static_cast<double>(want)));
    }
  const Comparison compared = compare(expected_of(tensor), layout, value);
  RC_ASSERT(compared.mismatch.has_value());
  const Reach& reach = *compared.mismatch->reach;
  RC_ASSERT(reach.elements == static_cast<std::int64_t>(wrong.size()));
  RC_ASSERT(reach.chips == static_cast<int>(wrong_chips.size()));
  RC_ASSERT(reach.of_elements == element_count(tensor.shape));
  bool differ = false;
  for (const auto& [want, all] : held) differ = differ || all.size() > 1;
  const bool replicated = copies.begin()->second > 1;
  RC_ASSERT(reach.replicas == (differ       ? Reach::Replicas::differ
                               : replicated ? Reach::Replicas::agree
                                            : Reach::Replicas::none));
  float worst_want = 1.0F;
  for (std::size_t d = 0, stride = tensor.data.size(); d < 2; ++d) {
    stride /= static_cast<std::size_t>(tensor.shape[d]);
    worst_want += static_cast<float>(static_cast<std::size_t>(reach.worst_index[d]) * stride);
  }
  double at_worst = 0.0;
  for (float got : held.at(worst_want))
    at_worst =
        std::max(at_worst, std::abs(static_cast<double>(got) - static_cast<double>(worst_want)));
  RC_ASSERT(at_worst == most);
}

}  // namespace
}  // namespace shardproof
