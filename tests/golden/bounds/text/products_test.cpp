// Products with weights of a text's lines: blocked, they are the sums of one product after another,
// and rows of a weight are looked up where they lie.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "oracle/walk/reduction.h"
#include "tests/golden/bounds/text/line_math.h"
#include "weights/text/model_text.h"

namespace shardproof::bounds {
namespace {

using Value = IntervalMath::Value;

Value rows_of(Random& random, const std::string& letters, const Shape& shape) {
  Value v{letters, shape, {}};
  for (std::int64_t i = 0; i < element_count(shape); ++i)
    v.data.push_back(operand(random, -2, 2, i % 3 == 0 ? 0.0 : 0x1p-20).first);
  return v;
}
Value weight(Random& random, const std::string& letters, const Shape& shape) {
  std::vector<float> floats;
  for (std::int64_t i = 0; i < element_count(shape); ++i)
    floats.push_back(static_cast<float>(uniform(random, -1, 1)));
  return {letters, shape, {}, {}, std::make_shared<const std::vector<float>>(std::move(floats))};
}
Shape shape_of_letters(const std::string& letters) {
  const std::map<char, std::int64_t> extents{{'B', 2}, {'L', 3}, {'E', 37}, {'F', 20},
                                             {'H', 2}, {'Q', 5}, {'V', 11}, {'X', 2}};
  Shape shape;
  for (const char c : letters) shape.push_back(extents.at(c));
  return shape;
}

/// Products with weights as they are stored, against sums of one product after another.
TEST(ProductsOfTexts, AreTheSums) {
  Random random(7);
  struct Asked {
    const char* einsum;
    bool blocked;
  };
  for (const Asked& asked :
       {Asked{"einsum(BLE,EF->BLF; x, w)", true},
        {"einsum(BLE,EHQ->BLHQ; x, w)", true},
        {"einsum(BLHQ,HQE->BLE; x, w)", true},
        {"einsum(BLE,VE->BLV; x, w)", true},
        {"einsum(LEB,EF->FBL; x, w)", true},
        {"einsum(HQBL,HQE->BLE; x, w)", true},
        {"einsum(BLHQ,HQE->BLE + BLF,FE->BLE; x, w; y, v)", true},
        {"einsum(BLHQ,QHE->BLE; x, w)", true},     // Q and H contracted in the weight's order
        {"einsum(BLHQ,HEQ->BLE; x, w)", false},    // columns between contracted letters
        {"einsum(BLX,XE->BLXE; x, w)", false},     // a letter of both and of the result
        {"einsum(BLEX,EF->BLF; x, w)", false}}) {  // a sum over a letter of the rows alone
    const Expression e = parse_expression(asked.einsum);
    std::vector<std::pair<Value, Value>> operands;
    for (const ContractionTerm& term : e.terms)
      operands.emplace_back(rows_of(random, term.a, shape_of_letters(term.a)),
                            weight(random, term.b, shape_of_letters(term.b)));
    const std::string& result = e.terms[0].result;
    for (const LineArithmetic& line : {f32(), bf16_line()}) {
      const IntervalMath math = math_of(line);
      const auto product = math.product(e, operands, shape_of_letters(result), true);
      ASSERT_EQ(product.has_value(), asked.blocked) << asked.einsum;
      if (!product) continue;
      EXPECT_EQ(product->letters, result);
      EXPECT_EQ(product->shape, shape_of_letters(result));
      std::vector<std::pair<Value, Value>> with_elements;
      for (const auto& [a, b] : operands)
        with_elements.emplace_back(a, oracle::graph::with_data(math, b));
      Value y{result, shape_of_letters(result), {}};
      const auto sums = oracle::graph::sums_of(math, e, with_elements, y);
      ASSERT_EQ(product->data.size(), sums.size());
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const Number right = sums[i].value().number, found = product->data[i].number;
        // Both hold the exact sum, and of what f64 adds neither knows more than that it is far
        // below the roundings of f32.
        const double apart = std::abs(found.center - right.center);
        EXPECT_LE(apart, 0x1p-20 * right.worst) << asked.einsum << i;
        EXPECT_LE(std::abs(found.worst - right.worst), 0x1p-20 * right.worst) << asked.einsum << i;
        EXPECT_LE(std::abs(found.likely - right.likely), 0x1p-20 * right.worst)
            << asked.einsum << i;
      }
      // Operands that are no weights, and weights in their place, have no blocks.
      auto swapped = operands;
      std::swap(swapped[0].first, swapped[0].second);
      EXPECT_FALSE(math.product(e, swapped, shape_of_letters(result), true));
      EXPECT_FALSE(math.product(e, with_elements, shape_of_letters(result), true));
    }
  }
}

TEST(ProductsOfTexts, RowsOfAWeightAreLookedUpWhereTheyLie) {
  Random random(8);
  const IntervalMath math = math_of(f32());
  const Value table = weight(random, "VE", shape_of_letters("VE"));
  Value ids{"BL", {2, 3}, {}};
  for (const double id : {10, 0, 3, 3, 7, 1}) ids.data.push_back(IntervalMath::number(id));
  const Value found = oracle::graph::gather_rows(math, table, ids, "line");
  const Value right =
      oracle::graph::gather_rows(math, oracle::graph::with_data(math, table), ids, "line");
  ASSERT_EQ(found.data.size(), right.data.size());
  EXPECT_EQ(found.shape, (Shape{2, 3, 37}));
  for (std::size_t i = 0; i < found.data.size(); ++i)
    EXPECT_EQ(found.data[i].number.center, right.data[i].number.center) << i;
}

}  // namespace
}  // namespace shardproof::bounds
