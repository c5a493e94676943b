// Two traces of a model that nobody knows: bits, distances, replicas, padding and layouts, and no
// claim beyond these.
#include "golden/trace/pair/plain.h"

#include <gtest/gtest.h>

#include "tests/golden/trace/pair/pairs.h"

namespace shardproof::dump {
namespace {

/// A value of four rows, eight tokens and twelve channels.
std::vector<double> some_numbers(int seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::normal_distribution<double> normal;
  std::vector<double> numbers(4 * 8 * 12);
  for (double& v : numbers) v = f32(normal(random));
  return numbers;
}

class Plains : public testing::Test {
 protected:
  Plains() : run_("torus=2x2x1 model=palm-tiny batch=4") {}

  /// A trace of a model with names of its own.
  static Dump empty() {
    Dump d;
    d.attributes = {{"format", "shardproof trace"}, {"version", "1"}, {"torus", "2x2x1"}};
    return d;
  }
  void add(Dump& d, const std::string& name, const std::string& layout, int seed,
           std::uint64_t form, const std::vector<double>& numbers = {}) const {
    run_.add(d, {name, "BLE", {4, 8, 12}, numbers.empty() ? some_numbers(seed) : numbers, {}},
             layout, form);
  }
  static const PairRow& row(const Plain& plain, const std::string& title) {
    for (const PairRow& one : plain.rows)
      if (one.title == title) return one;
    throw std::runtime_error(title);
  }

  ExactRun run_;
};

TEST_F(Plains, PutValuesTogetherByTheirOwnLayouts) {
  Dump a = empty(), b = empty();
  add(a, "prefill.c0.layer0.expert_out", "BLE_xy", 1, 1);
  add(b, "prefill.c0.layers.0.expert_out", "B_yLE", 1, 2);
  const Plain plain = compare_plain(a, b, false);
  EXPECT_EQ(plain.count(Likeness::same), 1);
  EXPECT_TRUE(plain.findings.empty());
  EXPECT_EQ(plain.exit_code(), 0);
}

TEST_F(Plains, ClaimNothingOfDistances) {
  Dump a = empty(), b = empty();
  std::vector<double> near = some_numbers(1);
  near[7] *= 1 + 0x1p-20;
  add(a, "prefill.c0.layer0.mixed", "BLE_xy", 1, 1);
  add(b, "prefill.c0.layer0.mixed", "BLE", 1, 0, near);
  const Plain plain = compare_plain(a, b, false);
  const PairRow& one = row(plain, "prefill.c0.layer0.mixed");
  EXPECT_EQ(one.likeness, Likeness::not_judged);
  EXPECT_EQ(one.apart.unequal, 1);
  EXPECT_GT(one.apart.relative(), 0);
  EXPECT_TRUE(plain.findings.empty());
  EXPECT_EQ(plain.exit_code(), 1);
}

TEST_F(Plains, FindADifferingReplica) {
  Dump a = empty(), b = empty();
  add(a, "prefill.c0.layer0.mixed", "BLE_x", 1, 2);
  add(b, "prefill.c0.layer0.mixed", "BLE", 1, 0);
  StoredArray& shard = a.values.begin()->second.chips.rbegin()->second;
  poke(shard, 3, shard.at(3) + 1);
  const Plain plain = compare_plain(a, b, false);
  ASSERT_EQ(plain.findings.size(), 1U);
  EXPECT_TRUE(
      plain.findings[0].starts_with("A: prefill.c0.layer0.mixed: replicas differ: chips "
                                    "(1,0,0) and (1,1,0) at [0,0,9]: "))
      << plain.findings[0];
  EXPECT_EQ(row(plain, "prefill.c0.layer0.mixed").likeness, Likeness::not_judged);
  EXPECT_EQ(plain.exit_code(), 1);
}

TEST_F(Plains, FindAWrongLayout) {
  for (const bool rounded : {false, true}) {
    Dump a = empty(), b = empty();
    std::vector<double> numbers = some_numbers(1);
    if (rounded)
      for (double& v : numbers) v = static_cast<double>(round_to_bf16(static_cast<float>(v)));
    add(a, "prefill.c0.layer0.mixed", "BLE_xy", 1, 1);
    a.values.begin()->second.attributes["layout"] = "BLE_yx";
    add(b, "prefill.c0.layer0.mixed", "BL_xE", 1, 2, numbers);
    const Plain plain = compare_plain(a, b, false);
    ASSERT_EQ(plain.findings.size(), 1U) << rounded;
    EXPECT_TRUE(plain.findings[0].starts_with(
        "A: prefill.c0.layer0.mixed is declared BLE_yx; as BLE_xy it would be B's"))
        << plain.findings[0];
  }
}

/// Numbers that differ more than a layout does, in every seed, and numbers too few to say.
TEST_F(Plains, FindNoWrongLayoutByChance) {
  for (int seed = 0; seed < 60; ++seed) {
    Dump a = empty(), b = empty();
    add(a, "prefill.c0.layer0.mixed", "BLE_xy", seed, 1);
    std::vector<double> numbers = some_numbers(seed % 3 == 0 ? seed + 1000 : seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::normal_distribution<double> normal;
    const double noise = seed % 3 == 1 ? 2.0 : 0.3;  // of the right layout: still the nearest
    for (double& v : numbers) v = f32(v + (seed % 3 == 0 ? 0 : noise * normal(random)));
    add(b, "prefill.c0.layer0.mixed", "B_xLE_y", 0, 1, numbers);
    EXPECT_TRUE(compare_plain(a, b, false).findings.empty()) << seed;
  }
}

/// Engines that round otherwise: no number is the other trace's, but the layout is found.
TEST_F(Plains, FindAWrongLayoutOfAnotherEngine) {
  for (int seed = 0; seed < 30; ++seed) {
    Dump a = empty(), b = empty();
    std::vector<double> numbers = some_numbers(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::normal_distribution<double> normal;
    const double unit = seed % 2 == 0 ? 0x1p-20 : 0x1p-6;
    for (double& v : numbers) v = f32(v + unit * normal(random));
    add(a, "prefill.c0.layer0.mixed", "BLE_xy", seed, 1);
    a.values.begin()->second.attributes["layout"] = "BLE_yx";
    add(b, "prefill.c0.layer0.mixed", "BLE", 0, 0, numbers);
    const Plain plain = compare_plain(a, b, false);
    ASSERT_EQ(plain.findings.size(), 1U) << seed;
    EXPECT_TRUE(plain.findings[0].starts_with(
        "A: prefill.c0.layer0.mixed is declared BLE_yx; as BLE_xy it would be B's up to "))
        << plain.findings[0];
  }
}

TEST_F(Plains, FindALayoutOfOtherExtents) {
  Dump a = empty(), b = empty();
  add(a, "prefill.c0.layer0.mixed", "BLE_x", 1, 1);
  a.values.begin()->second.attributes["layout"] = "BLE_xy";
  add(b, "prefill.c0.layer0.mixed", "BLE", 1, 0);
  const Plain plain = compare_plain(a, b, false);
  ASSERT_EQ(plain.findings.size(), 1U);
  EXPECT_EQ(row(plain, "prefill.c0.layer0.mixed").why, "by its layout E is 24 in A, 12 in B");
}

TEST_F(Plains, LeaveOutPadding) {
  Dump a = empty(), b = empty();
  add(a, "prefill.c0.layer0.mixed", "BLE", 1, 0);
  std::vector<double> longer;
  const std::vector<double> numbers = some_numbers(1);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    longer.push_back(numbers[i]);
    if (i % 12 == 11) longer.insert(longer.end(), 4, 7.5);
  }
  run_.add(b, {"prefill.c0.layer0.mixed", "BLE", {4, 8, 16}, longer, {{"padded", "E"}}}, "BLE_y",
           1);
  EXPECT_EQ(compare_plain(a, b, false).exit_code(), 0);
  EXPECT_EQ(compare_plain(b, a, false).exit_code(), 0);
  b.values.begin()->second.attributes.erase("padded");
  EXPECT_EQ(compare_plain(a, b, false).findings.size(), 1U);
}

TEST_F(Plains, ComparePartialSumsChipByChip) {
  Dump a = empty(), b = empty();
  for (Dump* const d : {&a, &b}) {
    Value value;
    value.attributes["layout"] = "BLE partialsum-x";
    for (const int x : {0, 1})
      for (const int y : {0, 1}) value.chips[{x, y, 0}] = stored({4, 8, 12}, some_numbers(x));
    ExactRun::insert(*d, "prefill.c0.layer0.sum", value);
  }
  EXPECT_EQ(compare_plain(a, b, false).exit_code(), 0);
  // What one chip has more another has less: the sums are the same.
  for (const int y : {0, 1}) {
    auto& chips = b.values.begin()->second.chips;
    poke(chips[{0, y, 0}], 0, chips[{0, y, 0}].at(0) + 1);
    poke(chips[{1, y, 0}], 0, chips[{1, y, 0}].at(0) - 1);
  }
  EXPECT_EQ(compare_plain(a, b, false).exit_code(), 1);
}

TEST_F(Plains, AskForNoMoreThanTheTraceHas) {
  Dump a = empty();
  a.attributes["torus"] = "16x16x16";
  Value value;
  value.attributes["layout"] = "BLE_xyz";
  value.chips[{0, 0, 0}] = stored({4, 8, 12}, some_numbers(1));
  ExactRun::insert(a, "prefill.c0.layer0.mixed", value);
  const Plain plain = compare_plain(a, a, false);
  EXPECT_EQ(row(plain, "prefill.c0.layer0.mixed").why,
            "in A: the trace has shards of 1 chips alone, of 4096");
  EXPECT_EQ(plain.exit_code(), 1);
}

TEST_F(Plains, SayOfAnArrayOfOtherDimsThatItIsNotOfItsLayout) {
  Dump a = empty();
  Value value;
  value.attributes["layout"] = "BLE_xy";
  for (const int x : {0, 1})
    for (const int y : {0, 1}) value.chips[{x, y, 0}] = stored({4, 8, 12, 1}, some_numbers(1));
  ExactRun::insert(a, "prefill.c0.layer0.mixed", value);
  for (const bool same : {false, true}) {
    const Plain plain = compare_plain(a, a, same);
    EXPECT_NE(plain.rows[0].why.find("an array [4,8,12,1] is not of layout BLE_xy"),
              std::string::npos)
        << plain.rows[0].why;
    EXPECT_EQ(plain.exit_code(), 1);
  }
}

/// Three tokens of two rows: plainly one after the other, and drafted two at a time, of which a
/// pass takes back the second and one of the first row alone.
class Speculation : public Plains {
 protected:
  static Value tokens(const std::vector<double>& numbers, std::int64_t L) {
    Value value;
    value.attributes["layout"] = "BLE";
    value.whole = stored({2, L, 2}, numbers);
    return value;
  }
  static Value slots(const std::vector<double>& numbers, std::int64_t M) {
    Value value;
    value.attributes["layout"] = "BMKQ";
    value.whole = stored({2, M, 1, 1}, numbers);
    return value;
  }
  static Value map_of(const std::vector<double>& numbers, std::int64_t L) {
    Value value;
    value.whole = stored({2, L}, numbers, NumberFormat::int32);
    return value;
  }
  /// Numbers of row b and position p: 10 b + p, and its negative.
  Speculation() : plainly(empty()), drafted(empty()) {
    for (Dump* const d : {&plainly, &drafted}) d->attributes["defined_order"] = "one";
    for (int p = 1; p <= 3; ++p) {
      const double v = p;
      const std::string pass = "decode." + std::to_string(p);
      ExactRun::insert(plainly, pass + ".layer0.out", tokens({v, -v, 10 + v, -10 - v}, 1));
      ExactRun::insert(plainly, pass + ".positions", map_of({v, v}, 1));
    }
    ExactRun::insert(plainly, "decode.3.layer0.k_cache", slots({0, 1, 2, 3, 10, 11, 12, 13}, 4));
    ExactRun::insert(drafted, "decode.1.layer0.out", tokens({1, -1, 5, 5, 11, -11, 12, -12}, 2));
    ExactRun::insert(drafted, "decode.1.positions", map_of({1, -1, 1, 2}, 2));
    ExactRun::insert(drafted, "decode.2.layer0.out", tokens({2, -2, 3, -3, 13, -13, 5, 5}, 2));
    ExactRun::insert(drafted, "decode.2.positions", map_of({2, 3, 3, -1}, 2));
    ExactRun::insert(drafted, "decode.2.layer0.k_cache", slots({0, 1, 2, 3, 10, 11, 12, 13}, 4));
  }
  Dump plainly, drafted;
};

TEST_F(Speculation, IsPlainDecoding) {
  const Plain plain = compare_plain(plainly, drafted, true);
  EXPECT_EQ(plain.exit_code(), 0);
  EXPECT_EQ(plain.count(Likeness::same), 4);
  EXPECT_EQ(compare_plain(drafted, plainly, true).exit_code(), 0);
}

TEST_F(Speculation, NamesADraftThatWasLeftInItsSlot) {
  StoredArray& cache = drafted.values.find("decode.2.layer0.k_cache")->second.whole;
  poke(cache, 2, 5.0);
  const Plain plain = compare_plain(plainly, drafted, true);
  EXPECT_EQ(plain.exit_code(), 1);
  EXPECT_EQ(row(plain, "decode.3.layer0.k_cache").likeness, Likeness::not_the_same);
}

TEST_F(Speculation, NamesAShiftedPositionAndAnotherRowsToken) {
  Dump shifted = drafted;
  poke(shifted.values.find("decode.2.layer0.out")->second.whole, 2, 2.0);
  EXPECT_EQ(row(compare_plain(plainly, shifted, true), "decode.3.layer0.out").likeness,
            Likeness::not_the_same);
  Dump other = drafted;
  other.attributes["rows"] = "1,0";
  const Plain plain = compare_plain(plainly, other, true);
  EXPECT_EQ(row(plain, "decode.1.layer0.out").likeness, Likeness::not_the_same);
  EXPECT_EQ(row(plain, "decode.2.layer0.out").likeness, Likeness::operands);
  EXPECT_EQ(plain.exit_code(), 1);
}

TEST_F(Speculation, WithoutADefinedOrderIsNotJudged) {
  drafted.attributes.erase("defined_order");
  EXPECT_EQ(compare_plain(plainly, drafted, true).exit_code(), 0);  // the same bits are
  poke(drafted.values.find("decode.2.layer0.out")->second.whole, 2, 2.0);
  const Plain plain = compare_plain(plainly, drafted, true);
  EXPECT_EQ(row(plain, "decode.3.layer0.out").likeness, Likeness::not_judged);
  EXPECT_EQ(plain.exit_code(), 1);
}

TEST_F(Speculation, WithAMapWithoutMeaningIsRefused) {
  drafted.attributes["rows"] = "0,x";
  EXPECT_THROW(compare_plain(plainly, drafted, true), Error);
  drafted.attributes["rows"] = "0";
  EXPECT_THROW(compare_plain(plainly, drafted, true), Error);
  drafted.attributes.erase("rows");
  poke(plainly.values.find("decode.3.layer0.out")->second.whole, 0, 3.0);
  drafted.values.find("decode.2.positions")->second = map_of({2, 3, 3}, 1);
  EXPECT_THROW(compare_plain(plainly, drafted, true), Error);
}

}  // namespace
}  // namespace shardproof::dump
