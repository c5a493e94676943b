// What is not a number in the field regime (docs/field.md section 1.4): a maximum that is summed
// shows, though a maximum of two sets is the sum of theirs.
#include <gtest/gtest.h>

#include "engine/ops/local_ops.h"
#include "engine/program/detail/overflow.h"
#include "tests/engine/run_program.h"
#include "tests/weights/expect_error.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

std::shared_ptr<const Field> some_field() {
  FieldSetting setting;
  setting.seed = 5;
  return std::make_shared<const Field>(setting);
}

Array<FieldElement> inputs(const Field& field, const std::string& name, const Shape& shape) {
  Array<FieldElement> all(shape);
  const FieldFunction stream(name);
  for (std::size_t i = 0; i < all.data.size(); ++i) all.data[i] = field.input(stream, i);
  return all;
}

Sharded on_one_chip(const Array<FieldElement>& value, const std::string& layout,
                    const std::shared_ptr<const Field>& field) {
  return shard(value, Layout::parse(layout), Torus(), field);
}

/// One element on each of two chips: partial sums, or blocks of `layout`.
Sharded on_two_chips(const FieldElement& a, const FieldElement& b, FieldSort sort,
                     const std::string& layout, const Shape& shape,
                     const std::shared_ptr<const Field>& field) {
  FieldShards shards{ChipArrays<FieldElement>(2), field, sort, {}};
  shards.values[0].push_back(a);
  shards.values[1].push_back(b);
  return {Torus(2, 1, 1), Layout::parse(layout), shape, shards};
}

/// The maximum of the scores of one query over these keys, [1, M, 1, Q].
Sharded max_over(const Array<FieldElement>& q, const Array<FieldElement>& keys,
                 const std::shared_ptr<const Field>& field) {
  IntTensor last({1, 1});
  last.data[0] = static_cast<std::int32_t>(keys.shape[1] - 1);
  Threads one(1);
  const Sharded k = on_one_chip(keys, "BMKQ", field);
  return attend(on_one_chip(q, "BLHQ", field), k, k, shard(last, Layout::parse("BL"), Torus()), one)
      .max;
}

TEST(FieldSorts, AnElementThatWasNeverWrittenIsFoundByStepChipAndIndex) {
  const auto field = some_field();
  const Program program = parse_program("layer", "input x : BE_x is in");
  const auto found = [&](const FieldElement& last) {
    return overflow(
        {"prefill.c0", "", 0}, program, program.inputs[0],
        on_two_chips(field->integer(1), last, FieldSort::number, "BE_x", {1, 2}, field));
  };
  EXPECT_FALSE(found(field->integer(2)).has_value());
  const std::optional<Finding> none = found(Field::unwritten());
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->label, "field_number");
  EXPECT_EQ(none->step, "prefill.c0.layer0.x");
  EXPECT_EQ(none->index, (std::vector<std::int64_t>{0, 1}));
}

TEST(FieldSorts, AMaximumThatIsSummedIsSeen) {
  const auto field = some_field();
  const Array<FieldElement> q = inputs(*field, "q", {1, 1, 1, 2});
  const Array<FieldElement> keys = inputs(*field, "keys", {1, 4, 1, 2});
  Array<FieldElement> first({1, 2, 1, 2}), second({1, 2, 1, 2});
  std::copy_n(keys.data.begin(), 4, first.data.begin());
  std::copy_n(keys.data.begin() + 4, 4, second.data.begin());
  const Sharded whole = max_over(q, keys, field), a = max_over(q, first, field),
                b = max_over(q, second, field);
  EXPECT_EQ(whole.field().sort, FieldSort::max);
  const FieldElement right = whole.field().values[0][0];
  const FieldElement of_a = a.field().values[0][0], of_b = b.field().values[0][0];
  // Of the bare elements the sum is the maximum of all keys.
  ASSERT_EQ(field->add(of_a, of_b), right);
  const Sharded parts =
      on_two_chips(of_a, of_b, FieldSort::max, "BLH partialsum-x", {1, 1, 1}, field);
  for (const Sharded& summed :
       {run_op("all_reduce(t, x)", parts), run_op("add(s, t)", {shared(a), shared(b)})}) {
    EXPECT_EQ(summed.field().sort, FieldSort::number);
    EXPECT_NE(summed.field().values[0][0], right);
  }
  // One that is only moved is the same.
  const Sharded moved = run_op(
      "all_gather(t, H, x)", on_two_chips(of_a, right, FieldSort::max, "BLH_x", {1, 1, 2}, field));
  EXPECT_EQ(moved.field().sort, FieldSort::max);
  EXPECT_EQ(moved.field().values[0][1], right);
}

TEST(FieldSorts, SumsOfEverySortButNumbersAreOthersOrRefused) {
  const auto field = some_field();
  const FieldElement a = field->integer(3), b = field->integer(4);
  const auto sum = [&](FieldSort sort) {
    return run_op("all_reduce(t, x)", on_two_chips(a, b, sort, "BC partialsum-x", {1, 1}, field));
  };
  EXPECT_EQ(sum(FieldSort::number).field().values[0][0], field->integer(7));
  for (const FieldSort sort : {FieldSort::max, FieldSort::candidate})
    EXPECT_NE(sum(sort).field().values[0][0], field->integer(7));
  // In place of integers.
  for (const FieldSort sort : {FieldSort::index, FieldSort::token})
    EXPECT_EQ(label_of([&] { sum(sort); }), "all_reduce_c2");
}

}  // namespace
}  // namespace shardproof
