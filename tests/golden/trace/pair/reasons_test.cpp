// Why a value of two traces is not judged, and what is matched without dims or rows of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "golden/trace/pair/matcher.h"
#include "golden/trace/pair/plain.h"
#include "tests/golden/trace/pair/pairs.h"

namespace shardproof::dump {
namespace {

TEST(Reasons, OfAWideBoundAndOfADriftAreSaid) {
  const ExactRun f32(kPairModel + " batch=2 prompt=12 gen=1 seed=3 weights=bf16"),
      bf16(kPairModel + " batch=2 prompt=12 gen=1 seed=3 weights=bf16 act=bf16");
  Engine in_f32(f32), in_bf16(bf16);
  in_bf16.library = true;
  const auto count = [](const Pair& pair, const std::string& why) {
    return std::count_if(pair.rows.begin(), pair.rows.end(), [&](const PairRow& row) {
      return row.likeness == Likeness::not_judged && row.why.starts_with(why);
    });
  };
  const Pair wide = pair_of(f32, in_f32.trace(kLean), bf16, in_bf16.trace(kLean));
  EXPECT_GE(count(wide, "in B: its bound is wide: operands are missing, or copies differ"), 4);
  EXPECT_EQ(count(wide, "in A: "), 0);
  const Pair alone = pair_of(f32, in_f32.trace({"logits"}), bf16, in_bf16.trace({"logits"}));
  EXPECT_EQ(count(alone, "in A: operands are missing: drift "), 1);
}

// Where one trace declares that what no query sees means nothing, it is not compared either.
TEST(Slots, ThatNoQuerySeesAreNotCompared) {
  const ExactRun run(kPairModel + " batch=2 prompt=6 gen=1 seed=3");
  Engine engine(run);
  const std::string name = "prefill.c0.layer1.score";
  for (const bool of_b : {false, true})
    for (const bool seen : {false, true}) {
      Dump a = engine.trace(kAllNames), b = engine.trace(kAllNames);
      (of_b ? b : a).attributes["masked"] = "any";
      const Shape shape = b.values.find(name)->second.whole.shape;
      const std::int64_t L = shape[1], H = shape[2], M = shape[3];
      for (std::int64_t i = 0; i < element_count(shape); ++i)
        if ((i % M > i / M / H % L) != seen)
          shift(of_b ? b : a, name, static_cast<std::size_t>(i), 7);
      const Pair pair = pair_of(run, a, b);
      const PairRow& row = pair_row(pair, name);
      EXPECT_EQ(row.likeness, !seen  ? Likeness::same
                              : of_b ? Likeness::b_wrong
                                     : Likeness::a_wrong);
      EXPECT_EQ(row.apart.elements, shape[0] * H * L * (L + 1) / 2);
      EXPECT_EQ(row.apart.unequal, seen ? row.apart.elements : 0);
      EXPECT_EQ(pair.exit_code(), seen ? 1 : 0);
    }
}

TEST(Matcher, FindsNothingOfPositionsWithoutARow) {
  PassPlaces places;
  places.B = 1, places.L = 3, places.rows = {{0}}, places.positions = {0, 1, 2}, places.last = {2};
  const TokenPlaces both{{"prefill.c0", places}, {"prefill.c1", places}};
  const Matcher matcher({{"prefill.c0", "table", "E", {2}}}, both,
                        {{"prefill.c0", "table", "LE", {3, 2}}, {"prefill.c1", "table", "E", {2}}},
                        both);
  std::vector<std::array<std::size_t, 2>> found;
  matcher.each(false, 0, [&](std::int64_t i, const Matcher::Partner& partner) {
    found.push_back({static_cast<std::size_t>(i), partner.array});
  });
  EXPECT_EQ(found, (std::vector<std::array<std::size_t, 2>>{{0, 1}, {1, 1}}));
  matcher.each(true, 0, [](std::int64_t, const Matcher::Partner&) { FAIL(); });
}

// Of a value that is known by its name the dims are known, too, if it has as many.
TEST(PlainArrays, OfKnownNamesHaveTheirDims) {
  const ExactRun run("torus=2x2x1 model=palm-tiny batch=4");
  const auto with = [&](const std::string& name, const std::string& layout) {
    Dump d;
    d.attributes = {{"format", "shardproof trace"}, {"version", "1"}, {"torus", "2x2x1"}};
    std::vector<double> numbers(4 * 8 * 12);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
    run.add(d, {name, "BLE", {4, 8, 12}, numbers, {}}, layout.empty() ? "BLE" : layout, 0);
    if (layout.empty()) d.values.begin()->second.attributes.erase("layout");
    return d;
  };
  for (const std::string name : {"prefill.c0.layer0.norm", "prefill.c0.layer0.raw out",
                                 "prefill.c0.layer0.unknown", "prefill.c0.layer0.q"}) {
    const bool known = name.ends_with("norm") || name.ends_with("out");
    const Plain plain = compare_plain(with(name, "BLE"), with(name, ""), false);
    ASSERT_EQ(plain.rows.size(), 1U);
    EXPECT_EQ(plain.exit_code(), known ? 0 : 1) << name;
    EXPECT_EQ(plain.rows[0].why, known ? "" : "the dims are BLE in A, abc in B") << name;
    EXPECT_EQ(compare_plain(with(name, ""), with(name, ""), false).exit_code(), 0);
  }
}

/// A trace of one value of two rows, stored in this format.
Dump stored_in(NumberFormat format) {
  Dump d;
  d.attributes = {{"format", "shardproof trace"}, {"version", "1"}};
  Value value;
  value.attributes["layout"] = "BLE";
  value.whole = {.shape = {2, 1, 2}, .encoding = format, .bytes = {}};
  value.whole.bytes.resize(4 * static_cast<std::size_t>(bytes_of(format)), std::byte{0x3f});
  ExactRun::insert(d, "prefill.c0.layer0.mixed", std::move(value));
  return d;
}

// Units are those of the coarser of both, whichever trace has it.
TEST(PlainArrays, HaveUnitsOfTheCoarserFormat) {
  for (const bool same : {false, true})
    for (const auto& [of_a, of_b, coarser] :
         {std::array{NumberFormat::f32, NumberFormat::bf16, NumberFormat::bf16},
          std::array{NumberFormat::bf16, NumberFormat::f32, NumberFormat::bf16},
          std::array{NumberFormat::f64, NumberFormat::f64, NumberFormat::f64},
          std::array{NumberFormat::f64, NumberFormat::f32, NumberFormat::f32}}) {
      const Plain plain = compare_plain(stored_in(of_a), stored_in(of_b), same);
      ASSERT_EQ(plain.rows.size(), 1U);
      EXPECT_TRUE(plain.rows[0].paired());
      EXPECT_EQ(plain.rows[0].coarser, coarser) << same;
    }
}

}  // namespace
}  // namespace shardproof::dump
