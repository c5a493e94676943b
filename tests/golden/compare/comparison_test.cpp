// One value held against what it must be; how far a mismatch reaches is reach_test's.
#include "golden/compare/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <type_traits>

#include "golden/faults/detail/one_term_each.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

template <class T>
std::vector<std::uint32_t> bits_of(const std::vector<T>& values) {
  std::vector<std::uint32_t> bits;
  for (const T value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// BE_y partialsum-xz of [1,4] on 2x2x2 chips: four partial sums of two blocks; element e of the
/// partial sum of (x,z) is 100x + 10z + e.
struct F32Parts {
  Torus torus{2, 2, 2};
  Layout layout = Layout::parse("BE_y partialsum-xz");
  ExpectedBits expected{.shape = {1, 4},
                        .bits = bits_of(std::vector<float>{0, 1, 2, 3, 10, 11, 12, 13,  //
                                                           100, 101, 102, 103, 110, 111, 112, 113}),
                        .integer = false};
  Sharded value{
      torus,
      layout,
      {1, 4},
      ChipArrays<float>{
          {0, 1}, {10, 11}, {2, 3}, {12, 13}, {100, 101}, {110, 111}, {102, 103}, {112, 113}}};

  float& at(std::size_t chip, std::size_t i) { return value.f32_of(static_cast<int>(chip))[i]; }
};

TEST(Comparison, OfF32PartialSumsIsTermByTerm) {
  F32Parts f;
  const Comparison right = compare(f.expected, f.layout, f.value);
  EXPECT_FALSE(right.mismatch);
  EXPECT_EQ(right.elements, 16);

  f.at(7, 0) = 111.0F;  // (1,1,1): of the last partial sum the third element
  const Comparison wrong = compare(f.expected, f.layout, f.value);
  ASSERT_TRUE(wrong.mismatch);
  EXPECT_EQ(wrong.elements, 15);
  EXPECT_EQ(wrong.mismatch->chip, "(1,1,1)");
  EXPECT_EQ(wrong.mismatch->index, (Shape{0, 2}));
  EXPECT_EQ(wrong.mismatch->expected, "112 (0x42e00000)");
  EXPECT_EQ(wrong.mismatch->actual, "111 (0x42de0000)");
  EXPECT_EQ(wrong.mismatch->reach->extent(), "on 1 of 8 chips, 1 of 16 elements, no replicas");
  EXPECT_EQ(wrong.mismatch->reach->worst_index, (Shape{0, 2}));
}

TEST(Comparison, SeesTwoPartialSumsExchangedThoughTheirSumIsRight) {
  F32Parts f;
  for (const auto& [a, b] : {std::pair{1, 4}, {3, 6}})
    std::ranges::swap_ranges(f.value.f32_of(a), f.value.f32_of(b));
  const Comparison c = compare(f.expected, f.layout, f.value);
  ASSERT_TRUE(c.mismatch);
  EXPECT_EQ(c.mismatch->reach->chips, 4);
  EXPECT_EQ(c.mismatch->reach->elements, 8);
}

TEST(Comparison, OfIntegersIsByValue) {
  const Torus torus(1, 1, 2);
  const Layout layout = Layout::parse("B_z");
  IntTensor ids({4});
  ids.data = {7, -1, 0, 65};
  const ExpectedBits expected{.shape = {4}, .bits = bits_of(ids.data), .integer = true};
  Sharded value = shard(ids, layout, torus);
  EXPECT_FALSE(compare(expected, layout, value).mismatch);
  value.i32_of(1)[0] = 3;
  const Comparison c = compare(expected, layout, value);
  ASSERT_TRUE(c.mismatch);
  EXPECT_EQ(c.mismatch->index, Shape{2});
  EXPECT_EQ(c.mismatch->expected, "0");
  EXPECT_EQ(c.mismatch->actual, "3");
}

TEST(Comparison, IsByTheDeclaredLayoutNotByTheValuesOwn) {
  const Torus torus(2, 2, 1);
  Tensor t({4});
  t.data = {1, 2, 3, 4};
  const ExpectedBits expected{.shape = {4}, .bits = bits_of(t.data), .integer = false};
  const Sharded value = shard(t, Layout::parse("E_yx"), torus);
  EXPECT_FALSE(compare(expected, Layout::parse("E_yx"), value).mismatch);
  EXPECT_TRUE(compare(expected, Layout::parse("E_xy"), value).mismatch);
}

/// Of a value that is right, every bit of every element of every chip.
template <class ElementsOf>
void expect_every_bit_seen(const ExpectedBits& expected, const Layout& layout, Sharded value,
                           ElementsOf&& elements_of) {
  EXPECT_FALSE(compare(expected, layout, value).mismatch);
  for (int chip = 0; chip < value.torus().chips(); ++chip)
    for (std::size_t i = 0; i < elements_of(value, chip).size(); ++i)
      for (int bit = 0; bit < 32; ++bit) {
        auto& element = elements_of(value, chip)[i];
        const auto right = element;
        element = std::bit_cast<std::remove_cvref_t<decltype(right)>>(
            std::bit_cast<std::uint32_t>(right) ^ 1U << bit);
        const Comparison c = compare(expected, layout, value);
        ASSERT_TRUE(c.mismatch) << chip << " " << i << " " << bit;
        EXPECT_EQ(c.mismatch->chip, value.torus().name(chip));
        elements_of(value, chip)[i] = right;
      }
}

TEST(Comparison, SeesEveryBitOfEveryElementOfEveryChip) {
  const auto floats = [](Sharded& value, int chip) { return value.f32_of(chip); };
  const F32Parts parts;
  expect_every_bit_seen(parts.expected, parts.layout, parts.value, floats);
  // Zeros of both signs and NaN among them; each block on two chips.
  const Torus torus(2, 3, 1);
  const Layout layout = Layout::parse("E_yB");
  Tensor t({6, 2});
  t.data = {0.0F, -0.0F, 1.0F, -1.0F, NAN, -NAN, INFINITY, 0x1p-149F, 3e38F, 0.0F, 2.0F, -0.0F};
  expect_every_bit_seen({.shape = t.shape, .bits = bits_of(t.data), .integer = false}, layout,
                        shard(t, layout, torus), floats);
  IntTensor ids({6, 2});
  ids.data = {0, 1, -1, 7, 1 << 30, 5, 0, 0, 3, 2, 1, -9};
  expect_every_bit_seen({.shape = ids.shape, .bits = bits_of(ids.data), .integer = true}, layout,
                        shard(ids, layout, torus),
                        [](Sharded& value, int chip) { return value.i32_of(chip); });
}

/// What NaN is not equal to, by its bits alone.
TEST(Comparison, OfNaNIsByItsBits) {
  const Torus torus(1, 1, 1);
  const std::vector<std::uint32_t> kinds{0x7fc00000U, 0xffc00000U, 0xffffffffU, 0x7fc00001U,
                                         0x7f800000U, 0U,          0x80000000U, 0x3f800000U};
  for (const std::uint32_t want : kinds)
    for (const std::uint32_t got : kinds) {
      const Sharded value(torus, Layout::parse("E"), {1},
                          ChipArrays<float>{{std::bit_cast<float>(got)}});
      const ExpectedBits expected{.shape = {1}, .bits = {want}, .integer = false};
      EXPECT_EQ(compare(expected, Layout::parse("E"), value).mismatch.has_value(), want != got)
          << want << " " << got;
    }
}

TEST(Comparison, OfASumThatIsUndecidedIsByItsTerms) {
  // Three chips' partial sums of element 13 of 64, which is none of those whose origins are looked
  // at anyway; the other elements are +0.
  const Torus torus(1, 1, 3);
  const Layout layout = Layout::parse("BE partialsum-z");
  struct Term {
    double value;
    float bound;
    float term;
  };
  const float above = 1 + 0x1p-23F;
  const struct {
    const char* what;
    Term partial_sums[3];
    float expected, sum;
  } table[] = {
      {"decided", {{5, 0, 5}, {0, 0, 0}, {2, 0, 2}}, 7, 7},
      {"a bound says that it may be another", {{5, 1e6F, 7}, {0, 0, 0}, {0, 0, 0}}, 5, 7},
      {"an addition lost something",
       {{0x1p60, 0, 0x1p60F}, {3, 0, 3}, {-0x1p60, 0, -0x1p60F}},
       0,
       3},
      {"a tie and more", {{1, 0, 1}, {0x1p-24, 0, 0x1p-24F}, {0, 0x1p-38F, 0x1p-40F}}, 1, above},
      {"a tie and less", {{1, 0, 1}, {0x1p-24, 0, 0x1p-24F}, {0, 0x1p-38F, -0x1p-40F}}, above, 1}};
  for (const auto& row : table) {
    auto terms = std::make_shared<OneTermEach>();
    Partial partial;
    for (const Term& s : row.partial_sums) {
      Buffer<double> values(64);
      Buffer<float> bounds(64);
      std::fill(values.begin(), values.end(), 0.0);
      std::fill(bounds.begin(), bounds.end(), 0.0F);
      values[13] = s.value;
      bounds[13] = s.bound;
      terms->of_chip.emplace_back(64, 0.0F)[13] = s.term;
      partial.values.push_back(std::move(values));
      partial.bounds.push_back(std::move(bounds));
      partial.origins.push_back({});
    }
    partial.source = terms;
    std::vector<std::uint32_t> bits(64, 0);
    bits[13] = std::bit_cast<std::uint32_t>(row.expected);
    const Comparison c = compare({.shape = {1, 64}, .bits = bits, .integer = false}, layout,
                                 Sharded(torus, layout, {1, 64}, partial));
    ASSERT_EQ(c.mismatch.has_value(), row.expected != row.sum) << row.what;
    EXPECT_EQ(c.elements, c.mismatch ? 14 : 64) << row.what;
    if (!c.mismatch) continue;
    EXPECT_EQ(c.mismatch->index, (Shape{0, 13})) << row.what;
    EXPECT_EQ(c.mismatch->actual, element_text(std::bit_cast<std::uint32_t>(row.sum), false))
        << row.what;
    EXPECT_EQ(c.mismatch->reach->elements, 1) << row.what;
    EXPECT_EQ(c.mismatch->reach->chips, 3) << row.what;
  }
}

TEST(Comparison, OfALongBlockIsByTheSumsOfAllOfIt) {
  // Of 600 elements, of which a few at a time are added up, each is 1 + 2.
  const Torus torus(1, 1, 2);
  const Layout layout = Layout::parse("E partialsum-z");
  const ExpectedBits expected{
      .shape = {600},
      .bits = std::vector<std::uint32_t>(600, std::bit_cast<std::uint32_t>(3.0F)),
      .integer = false};
  for (const std::size_t wrong : {0U, 255U, 256U, 257U, 511U, 512U, 599U}) {
    auto terms = std::make_shared<OneTermEach>();
    for (const float term : {1.0F, 2.0F}) terms->of_chip.emplace_back(600, term);
    Partial partial;
    for (const double value : {1.0, 2.0}) partial.values.push_back(Buffer<double>(600, value));
    partial.bounds.resize(2);
    partial.origins.resize(2);
    partial.source = terms;
    EXPECT_FALSE(compare(expected, layout, Sharded(torus, layout, {600}, partial)).mismatch);
    partial.values[1][wrong] = 5.0;
    const Comparison c = compare(expected, layout, Sharded(torus, layout, {600}, partial));
    ASSERT_TRUE(c.mismatch) << wrong;
    EXPECT_EQ(c.mismatch->index, Shape{static_cast<std::int64_t>(wrong)});
  }
}

TEST(Comparison, OfASharedBufferIsOnceForEachBlockThatItMustBe) {
  // Rows 1 2 and 3 4, each on two chips, which hold one buffer of it.
  const Torus torus(1, 2, 2);
  const Layout layout = Layout::parse("B_yE");
  Tensor t({2, 2});
  t.data = {1, 2, 3, 4};
  const ExpectedBits expected{
      .shape = {2, 2}, .bits = Words<std::uint32_t>::of(t.data), .integer = false};
  const Sharded right = shard(t, layout, torus);
  ASSERT_TRUE(right.f32().shares(2, 3));
  const Comparison c = compare(expected, layout, right);
  EXPECT_FALSE(c.mismatch);
  EXPECT_EQ(c.elements, 8) << "every chip counts";

  // A chip with a wrong buffer of its own, though its replica's is right.
  Sharded own = right;
  own.f32_of(3)[1] = 5;
  const Comparison of_own = compare(expected, layout, own);
  ASSERT_TRUE(of_own.mismatch);
  EXPECT_EQ(of_own.mismatch->chip, "(0,1,1)");
  EXPECT_EQ(of_own.mismatch->index, (Shape{1, 1}));
  EXPECT_EQ(of_own.elements, 8);
  EXPECT_EQ(of_own.mismatch->reach->extent(), "on 1 of 4 chips, 1 of 4 elements, replicas differ");

  // A chip with the right buffer of another block.
  ChipArrays<float> chips = right.f32();
  chips.share(2, 0);
  const Comparison of_other = compare(expected, layout, Sharded(torus, layout, {2, 2}, chips));
  ASSERT_TRUE(of_other.mismatch);
  EXPECT_EQ(of_other.mismatch->chip, "(0,1,0)");
  EXPECT_EQ(of_other.mismatch->actual, "1 (0x3f800000)");
  EXPECT_EQ(of_other.elements, 5);

  // A wrong buffer that all replicas hold: the first of them is told, all are counted.
  chips = right.f32();
  chips[2][0] = 7;
  chips.share(3, 2);
  const Comparison of_both = compare(expected, layout, Sharded(torus, layout, {2, 2}, chips));
  ASSERT_TRUE(of_both.mismatch);
  EXPECT_EQ(of_both.mismatch->chip, "(0,1,0)");
  EXPECT_EQ(of_both.mismatch->reach->extent(), "on 2 of 4 chips, 1 of 4 elements, replicas agree");
}

TEST(Comparison, OfSharedValuesIsByEachChipsOwnBoundsAndTerms) {
  // Two groups of two chips with the same values, each element of which is 1 + 2.
  const Torus torus(1, 2, 2);
  const Layout layout = Layout::parse("E partialsum-z");
  auto terms = std::make_shared<OneTermEach>();
  for (const float term : {1.0F, 2.0F, 1.0F, 2.0F}) terms->of_chip.emplace_back(64, term);
  Partial partial;
  for (const double value : {1.0, 2.0}) partial.values.push_back(Buffer<double>(64, value));
  partial.values.resize(4);
  for (const std::size_t chip : {0U, 1U}) partial.values.share(chip + 2, chip);
  partial.bounds.resize(4);
  partial.origins.resize(4);
  partial.source = terms;
  const ExpectedBits expected{
      .shape = {64},
      .bits = std::vector<std::uint32_t>(64, std::bit_cast<std::uint32_t>(3.0F)),
      .integer = false};
  const auto compared = [&] {
    return compare(expected, layout, Sharded(torus, layout, {64}, partial));
  };
  EXPECT_FALSE(compared().mismatch);
  EXPECT_EQ(compared().elements, 128);

  // Of element 16, one of the few, the second group multiplied something else.
  terms->of_chip[3][16] = 9.0F;
  const Comparison c = compared();
  ASSERT_TRUE(c.mismatch);
  EXPECT_EQ(c.mismatch->chip, "(0,1,0)");
  EXPECT_EQ(c.mismatch->index, Shape{16});
  EXPECT_EQ(c.mismatch->actual, "10 (0x41200000)");
  EXPECT_EQ(c.elements, 64 + 17);
  EXPECT_EQ(c.mismatch->reach->chips, 2);

  // Of element 13 it did, too; that shows where its own bound leaves the sum undecided.
  terms->of_chip[3] = std::vector<float>(64, 2.0F);
  terms->of_chip[3][13] = 9.0F;
  EXPECT_FALSE(compared().mismatch);
  partial.bounds[3] = Buffer<float>(64, 0.0F);
  partial.bounds[3][13] = 100.0F;
  ASSERT_TRUE(compared().mismatch);
  EXPECT_EQ(compared().mismatch->index, Shape{13});
  EXPECT_EQ(compared().elements, 64 + 14);
}

TEST(Comparison, OfWhatCannotBeComparedIsACallersMistake) {
  const F32Parts f;
  const auto label = [](const ExpectedBits& expected, const char* layout, const Sharded& value) {
    return label_of([&] { compare(expected, Layout::parse(layout), value); });
  };
  ExpectedBits changed = f.expected;
  EXPECT_EQ(label(changed, "BE_y partialsum-xz", f.value), "");
  EXPECT_EQ(label(changed, "BLE_y partialsum-xz", f.value), "compare_c1") << "too many dims";
  EXPECT_EQ(label(changed, "BE_y partialsum-x", f.value), "compare_c1") << "too many partial sums";
  changed.integer = true;
  EXPECT_EQ(label(changed, "BE_y partialsum-xz", f.value), "compare_c1") << "f32, not int32";
  changed = f.expected;
  std::vector<std::uint32_t> fewer = changed.bits.copy();
  fewer.pop_back();
  changed.bits = fewer;
  EXPECT_EQ(label(changed, "BE_y partialsum-xz", f.value), "compare_c1") << "too few bits";
}

}  // namespace
}  // namespace shardproof
