#include "golden/corpus/detail/operand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "golden/corpus/detail/stacked.h"
#include "golden/corpus/document.h"

namespace shardproof::corpus {
namespace {

const Torus kTorus(2, 1, 3);

/// Stacked f32 under a layout.
dump::Value value(const std::string& layout, const Shape& shape,
                  const std::vector<float>& numbers) {
  dump::Dump golden = empty_golden(Kind::collectives);
  put(golden, "t", shape, std::span<const float>(numbers), {{"layout", layout}});
  return golden.values.find("t")->second;
}

std::vector<float> counted(std::size_t size) {
  std::vector<float> numbers(size);
  for (std::size_t i = 0; i < size; ++i) numbers[i] = static_cast<float>(i + 1);
  return numbers;
}

std::string operand_refusal(const dump::Value& v) {
  try {
    read_operand("t.operand", v, kTorus);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(ReadOperand, PutsShardsTogether) {
  // Chip (x,z) holds block z*2 + x of six blocks of E.
  const Operand read = read_operand("t", value("BE_zx", {2, 1, 3, 1, 1}, counted(6)), kTorus);
  EXPECT_EQ(read.shape, (Shape{1, 6}));
  ASSERT_EQ(read.parts.size(), 1U);
  EXPECT_EQ(read.parts[0], (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(read.shards.size(), 6U);
}

TEST(ReadOperand, KeepsPartialSumsApart) {
  const Operand read =
      read_operand("t", value("BE_x partialsum-z", {2, 1, 3, 1, 1}, counted(6)), kTorus);
  EXPECT_EQ(read.parts, (std::vector<std::vector<float>>{{1, 4}, {2, 5}, {3, 6}}));
}

TEST(ReadOperand, Refuses) {
  dump::Value bare = value("BE_zx", {2, 1, 3, 1, 1}, counted(6));
  EXPECT_EQ(operand_refusal(bare), "nothing");
  bare.attributes.erase("layout");
  EXPECT_EQ(operand_refusal(bare), "golden_operand: t.operand: no layout");
  dump::Value shards = value("BE_zx", {2, 1, 3, 1, 1}, counted(6));
  shards.chips[{0, 0, 0}] = shards.whole;
  EXPECT_EQ(operand_refusal(shards), "golden_operand: t.operand: not f32, stacked over x, y, z");
  dump::Value ints = value("BE_zx", {2, 1, 3, 1, 1}, counted(6));
  ints.whole.encoding = NumberFormat::int32;
  EXPECT_EQ(operand_refusal(ints), "golden_operand: t.operand: not f32, stacked over x, y, z");
  for (const Shape& shape : {Shape{}, Shape{6}, Shape{2, 3}, Shape{2, 1, 3}, Shape{2, 1, 3, 1},
                             Shape{1, 2, 3, 1, 1}, Shape{2, 1, 3, 1, 1, 1}})
    EXPECT_EQ(operand_refusal(value("BE_zx", shape, counted(6))),
              "golden_operand: t.operand: not f32, stacked over x, y, z");
  EXPECT_EQ(operand_refusal(value("B_xE_x", {2, 1, 3, 1, 1}, counted(6))).find("layout_c3"), 0U);
}

TEST(ReadOperand, RefusesCopiesThatDiffer) {
  std::vector<float> numbers(6, 1.0F);
  EXPECT_EQ(operand_refusal(value("BE", {2, 1, 3, 1, 1}, numbers)), "nothing");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::vector<float> other = numbers;
    other[i] = 2.0F;
    EXPECT_EQ(operand_refusal(value("BE", {2, 1, 3, 1, 1}, other)),
              "golden_operand: t.operand: copies on several chips differ");
  }
  std::vector<float> zeros(6, 0.0F);
  zeros[5] = -0.0F;
  EXPECT_NE(operand_refusal(value("BE", {2, 1, 3, 1, 1}, zeros)), "nothing");
}

/// Where the order of a sum could matter, nobody's result is the only right one.
TEST(ReadOperand, RefusesSumsThatAreNotExact) {
  const auto with = [](float v) {
    std::vector<float> numbers = counted(6);
    numbers[2] = v;
    return operand_refusal(value("BE_x partialsum-z", {2, 1, 3, 1, 1}, numbers));
  };
  EXPECT_EQ(with(-7.0F), "nothing");
  EXPECT_EQ(with(0x1p23F), "nothing");
  EXPECT_EQ(with(1.5F), "golden_operand: t.operand: a partial sum is not a whole number");
  EXPECT_EQ(with(0x1p24F), "golden_operand: t.operand: partial sums whose sums f32 cannot hold");
  EXPECT_EQ(with(-0x1p24F), "golden_operand: t.operand: partial sums whose sums f32 cannot hold");
  for (const float v :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()})
    EXPECT_NE(with(v), "nothing");
}

TEST(ReadOperand, RefusesWhatIsNotFinite) {
  for (const float v : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    std::vector<float> numbers = counted(6);
    numbers[4] = v;
    EXPECT_EQ(operand_refusal(value("BE_xz", {2, 1, 3, 1, 1}, numbers)),
              "golden_operand: t.operand: an element that is not finite");
  }
}

TEST(ResultOf, AddsWhatAgrees) {
  const Operand read =
      read_operand("t", value("BE_x partialsum-z", {2, 1, 3, 1, 1}, counted(6)), kTorus);
  const auto sum = [&](const std::string& text) {
    const Layout result = Layout::parse(text);
    return result_of(read, result, kTorus, counts_keeping(result.partial(), read.layout, kTorus));
  };
  EXPECT_EQ(sum("BE_x"), (std::vector<float>{6, 6, 6, 15, 15, 15}));
  EXPECT_EQ(sum("BE_x partialsum-z"), counted(6));
  EXPECT_EQ(sum("BE"), (std::vector<float>{6, 15, 6, 15, 6, 15, 6, 15, 6, 15, 6, 15}));
  // -0 that is only moved stays.
  const Operand zeros =
      read_operand("t", value("BE_zx", {2, 1, 3, 1, 1}, std::vector<float>(6, -0.0F)), kTorus);
  for (const float v :
       result_of(zeros, Layout::parse("BE"), kTorus, counts_keeping(Axes(), zeros.layout, kTorus)))
    EXPECT_TRUE(std::signbit(v));
}

}  // namespace
}  // namespace shardproof::corpus
