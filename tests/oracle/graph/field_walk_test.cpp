// Functions of a text in the field regime: random ones by their names, but for comparisons of
// positions.
#include <gtest/gtest.h>

#include "oracle/graph/field_run.h"

namespace shardproof::oracle {
namespace {

using Numbers = std::vector<field::Number>;

/// A value of a pass over four tokens, at the positions 0 to 3, that this line defines.
Numbers value_of(const std::string& expression) {
  const ModelText text = parse_model_text(
      "model small\ndim E one\ndim V words\nsmall E=1, V=8\nembedding\nweight table : VE\n"
      "embed : BLE = gather(table, ids, V)\ny : BL = " +
      expression +
      "\nlayer\nout : BLE = in\nhead\nlogits : BLV = einsum(BLE,VE->BLV; in, table)\n");
  const TextSizes sizes = sizes_of(text);
  IntTensor ids({1, 4});
  return graph::run_in_field({.text = text,
                              .sizes = sizes,
                              .ids = ids,
                              .passes = Passes(1, 4, 0, 1),
                              .setting = {}})
      .at("prefill.c0.y")
      .data;
}

TEST(WalkInTheField, WithinComparesPositions) {
  const field::Number zero = value_of("pos")[0], one = value_of("pos")[1];
  EXPECT_EQ(value_of("within(pos, 1, 2)"), (Numbers{zero, one, one, zero}));
  EXPECT_EQ(value_of("within(sub(pos, 2), -inf, 0)"), (Numbers{one, one, one, zero}));
  const field::Number third = value_of("within(div(pos, 3), 0, 1)")[1];
  EXPECT_TRUE(third != zero && third != one);
}

TEST(WalkInTheField, ClampIsARandomFunctionOfPositionsToo) {
  const Numbers positions = value_of("pos"), clamped = value_of("clamp(pos, 1, 2)");
  for (size_t i = 0; i < clamped.size(); ++i)
    for (size_t j = 0; j < positions.size(); ++j) {
      EXPECT_NE(clamped[i], positions[j]) << i << " and " << j;
      EXPECT_EQ(clamped[i] == clamped[j], i == j) << i << " and " << j;
    }
  EXPECT_EQ(value_of("clamp(add(sub(pos, 1), 1), 1, 2)"), clamped);
  EXPECT_NE(value_of("clamp(pos, 1, 3)")[0], clamped[0]);
  EXPECT_NE(value_of("clamp(pos, 0, 2)")[0], clamped[0]);
}

}  // namespace
}  // namespace shardproof::oracle
