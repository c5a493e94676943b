// What two traces are compared by: distances, maps, probabilities, each alone.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/trace/pair/apart.h"
#include "golden/trace/pair/matcher.h"
#include "golden/trace/pair/plain_layouts.h"
#include "golden/trace/pair/positions.h"
#include "tests/golden/trace/pair/pairs.h"

namespace shardproof::dump {
namespace {

using Two = std::vector<std::pair<double, double>>;

Apart apart_of(const Two& numbers, NumberFormat coarser) {
  return apart(coarser, [&](const auto& see) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      see(static_cast<std::int64_t>(i), numbers[i].first, numbers[i].second);
  });
}

TEST(Apart, CountsBitsAndMeasuresDistances) {
  const Apart same = apart_of({{1, 1}, {NAN, NAN}}, NumberFormat::f32);
  EXPECT_TRUE(same.same());
  EXPECT_EQ(same.most, 0);
  EXPECT_FALSE(apart_of({}, NumberFormat::f32).same());
  EXPECT_FALSE(apart_of({{0.0, -0.0}}, NumberFormat::f32).same());
  const Apart found = apart_of({{3, 3}, {-4, -4.5}, {3, 3}}, NumberFormat::bf16);
  EXPECT_EQ(found.unequal, 1);
  EXPECT_EQ(found.most, 0.5);
  EXPECT_EQ(found.place, 1);
  EXPECT_NEAR(found.scale, std::sqrt((4 * 9 + 16 + 20.25) / 6), 1e-12);
  EXPECT_EQ(found.units, 0.5 / 0x1p-5);  // bf16 has 2^-5 between 4 and 8
  for (const auto& pair : Two{{1, NAN}, {NAN, 1}, {1, INFINITY}})
    EXPECT_TRUE(std::isinf(apart_of({pair}, NumberFormat::f32).most));
  // Near zero the spacing is that of the root mean square.
  EXPECT_LT(apart_of({{1e-9, -1e-9}, {1, 1}}, NumberFormat::f32).units, 0.1);
}

TEST(Positions, HaveTheLargestDifferenceAndTheDivergence) {
  LogitsOfBoth logits;
  logits.pass = "decode.1";
  logits.a = {{1, 2}, {0, std::log(3.0)}, {true, true}};  // p = 1/4, 3/4
  logits.b = {{1, 2}, {5, 5}, {true, true}};              // q = 1/2, 1/2
  logits.row_of_b = {0};
  Wander of_a, of_b;
  of_a.logits["decode.1"] = {{0.1, 0.2}};
  of_b.logits["decode.1"] = {{0.1, 0.1}};
  const auto found = positions_of(logits, of_a, of_b, "decode.1");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].most, std::log(2.0), 1e-12);
  EXPECT_EQ(found[0].token, 0);
  EXPECT_NEAR(found[0].divergence, 0.25 * std::log(0.5) + 0.75 * std::log(1.5), 1e-12);
  EXPECT_NEAR(*found[0].explained(), 0.3 / std::log(2.0), 1e-12);
  logits.row_of_b = {-1};
  EXPECT_TRUE(positions_of(logits, of_a, of_b, "decode.1").empty());
}

/// One row of tokens at these positions; -1: rejected.
PassPlaces pass_of_one_row(const std::vector<std::int64_t>& positions) {
  PassPlaces places;
  places.B = 1, places.L = std::ssize(positions);
  places.rows = {{0}};
  places.positions = positions;
  places.last = {-1};
  for (std::size_t l = 0; l < positions.size(); ++l)
    if (positions[l] >= 0) places.last[0] = static_cast<std::int64_t>(l);
  return places;
}
using Found = std::vector<std::array<std::int64_t, 3>>;  // element, array, element
Found found_by(const Matcher& matcher, bool turned, std::size_t array) {
  Found all;
  matcher.each(turned, array, [&](std::int64_t i, const Matcher::Partner& partner) {
    all.push_back({i, static_cast<std::int64_t>(partner.array), partner.element});
  });
  return all;
}

TEST(Matcher, FindsTokensSlotsAndKeysOfOnePosition) {
  const TokenPlaces whole{{"prefill.c0", pass_of_one_row({0, 1, 2})}};
  const TokenPlaces chunks{{"prefill.c0", pass_of_one_row({0, 1})},
                           {"prefill.c1", pass_of_one_row({2})}};
  const Matcher matcher({{"prefill.c0", "out", "BLE", {1, 3, 1}},
                         {"prefill.c0", "score", "BLHM", {1, 3, 1, 3}},
                         {"prefill.c0", "cache", "BMK", {1, 3, 1}}},
                        whole,
                        {{"prefill.c0", "out", "BLE", {1, 2, 1}},
                         {"prefill.c1", "out", "BLE", {1, 1, 1}},
                         {"prefill.c0", "score", "BLHM", {1, 2, 1, 2}},
                         {"prefill.c1", "score", "BLHM", {1, 1, 1, 3}},
                         {"prefill.c0", "cache", "BMK", {1, 2, 1}},
                         {"prefill.c1", "cache", "BMK", {1, 3, 1}}},
                        chunks);
  EXPECT_EQ(found_by(matcher, false, 0), (Found{{0, 0, 0}, {1, 0, 1}, {2, 1, 0}}));
  EXPECT_EQ(found_by(matcher, false, 1),
            (Found{{0, 2, 0}, {3, 2, 2}, {4, 2, 3}, {6, 3, 0}, {7, 3, 1}, {8, 3, 2}}));
  EXPECT_EQ(found_by(matcher, false, 2), (Found{{0, 4, 0}, {1, 4, 1}, {2, 5, 2}}));
  EXPECT_EQ(found_by(matcher, true, 5), (Found{{0, 2, 0}, {1, 2, 1}, {2, 2, 2}}));
}

TEST(Matcher, LeavesOutWhatWasRejectedUntilItIsFilled) {
  const TokenPlaces plain{{"decode.1", pass_of_one_row({0})}, {"decode.2", pass_of_one_row({1})}};
  const TokenPlaces drafts{{"decode.1", pass_of_one_row({0, -1})},
                           {"decode.2", pass_of_one_row({1})}};
  const Matcher matcher(
      {{"decode.2", "cache", "BMK", {1, 2, 1}}}, plain,
      {{"decode.1", "cache", "BMK", {1, 2, 1}}, {"decode.2", "cache", "BMK", {1, 2, 1}}}, drafts);
  EXPECT_EQ(found_by(matcher, false, 0), (Found{{0, 0, 0}, {1, 1, 1}}));
  EXPECT_EQ(found_by(matcher, true, 0), (Found{{0, 0, 0}}));
  EXPECT_EQ(found_by(matcher, true, 1), (Found{{0, 0, 0}, {1, 0, 1}}));
}

TEST(Matcher, FindsOfOneValueTheArrayOfItsName) {
  const TokenPlaces one{{"decode.1", pass_of_one_row({0})}};
  const Matcher matcher({{"decode.1", "out", "BLE", {1, 1, 1}, "sum"},
                         {"decode.1", "out", "BLE", {1, 1, 1}, "stored"}},
                        one,
                        {{"decode.1", "out", "BLE", {1, 1, 1}, "sum"},
                         {"decode.1", "out", "BLE", {1, 1, 1}, "of another writer"}},
                        one);
  EXPECT_EQ(found_by(matcher, false, 0), (Found{{0, 0, 0}}));
  EXPECT_EQ(found_by(matcher, false, 1), (Found{{0, 1, 0}}));
}

TEST(OtherLayouts, HaveBlocksOfTheSameShape) {
  const auto texts = [](const char* layout, const char* torus) {
    std::set<std::string> all;
    for (const Layout& one : other_layouts(Layout::parse(layout), Torus::parse(torus)))
      all.insert(one.to_string());
    return all;
  };
  EXPECT_EQ(texts("BLE_xy", "2x3x1"), (std::set<std::string>{"BLE_yx"}));
  EXPECT_EQ(texts("B_xLE_y", "2x2x1"), (std::set<std::string>{"B_yLE_x"}));
  EXPECT_EQ(texts("BLE_x", "2x1x2"), (std::set<std::string>{"BLE_z"}));
  EXPECT_TRUE(texts("BLE", "2x2x2").empty());
  EXPECT_TRUE(texts("BLE_x partialsum-y", "2x2x1").empty());
}

TEST(OtherLayouts, AreNearerByChance) {
  const auto chance = [](const MovedDistances& of) { return std::exp2(chance_of_nearer(of)); };
  EXPECT_EQ(chance({}), 1);
  EXPECT_NEAR(chance({{2}, {1}}), 1.0 / 2, 1e-12);
  EXPECT_NEAR(chance({{1}, {2}}), 1, 1e-12);
  EXPECT_NEAR(chance({{1}, {1}}), 1, 1e-12);
  EXPECT_NEAR(chance({{2, 2}, {1, 1}}), 1.0 / 6, 1e-12);
  EXPECT_NEAR(chance({{2, 0}, {1, 1}}), 3.0 / 6, 1e-12);
  EXPECT_NEAR(chance({{HUGE_VAL, HUGE_VAL, HUGE_VAL}, {1, 0, 1}}), 1.0 / 20, 1e-12);
}

/// Without the values between q and attn a wide bound says little: that is not "by rounding".
TEST(Loose, IsNotJudgedWhereOperandsAreMissing) {
  const ExactRun f32(kPairModel + " batch=2 prompt=12 gen=1 seed=3 weights=bf16"),
      bf16(kPairModel + " batch=2 prompt=12 gen=1 seed=3 weights=bf16 act=bf16");
  Engine in_f32(f32), in_bf16(bf16);
  in_bf16.library = true;
  const Pair pair = pair_of(f32, in_f32.trace(kLean), bf16, in_bf16.trace(kLean));
  EXPECT_FALSE(pair.first) << open_rows(pair);
  int loose = 0;
  for (const PairRow& row : pair.rows) {
    if (!row.paired() || pair.b.verdict.rows[*row.b].fit != Fit::loose) continue;
    ++loose;
    EXPECT_EQ(row.likeness, Likeness::not_judged) << row.title;
  }
  EXPECT_GT(loose, 0);
  EXPECT_EQ(pair.exit_code(), 1);
}

}  // namespace
}  // namespace shardproof::dump
