// Values of which some rows or chips have one fault, and others another.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

const std::string kSmall =
    "model=palm-tiny,layers=2,E=16,F=24,H=4,K=2,Q=4,V=48 batch=3 prompt=4 chunk=3 gen=3";

void expect_two(const Planted::Said& said, const std::vector<std::string>& faults,
                const std::vector<std::string>& parts) {
  ASSERT_EQ(said.size(), 2U) << text(said);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_TRUE(said[i].explains) << text(said);
    EXPECT_EQ(said[i].fault, faults[i]) << text(said);
    EXPECT_TRUE(said[i].detail.ends_with("; one of two faults, that of " + parts[i])) << text(said);
  }
}

class TwoFaults : public testing::Test {
 protected:
  TwoFaults() { p.texts = 0; }

  /// The value whose row b is that of `rows[b]`.
  Planted::Said of_rows(const std::vector<Planted::Value>& rows) {
    Planted::Value y = p.value(kGate);
    const std::size_t row = y.data.size() / rows.size();
    for (std::size_t i = 0; i < y.data.size(); ++i) y.data[i] = rows[i / row].data[i];
    return p.ask(kGate, y);
  }
  Planted::Value of_other_weight() const {
    return Planted::f32(p.product(kAt + "norm", "layer0.w_gate"), p.value(kGate).shape);
  }

  Planted p{kSmall + " seed=51"};
};

TEST_F(TwoFaults, OfRows) {
  const Planted::Value right = p.value(kGate), other = of_other_weight(), more = scaled(right, 1.5);
  Noise noise;
  const Planted::Value wild = noise.on(right, 1.0);
  const std::string weight = "another layer's weight", factor = "another factor";
  expect_two(of_rows({other, more, right}), {weight, factor}, {"row 0", "row 1"});
  expect_two(of_rows({right, more, other}), {factor, weight}, {"row 1", "row 2"});
  expect_two(of_rows({more, other, more}), {factor, weight}, {"row 0, row 2", "row 1"});
  expect_unexplained(of_rows({other, more, scaled(right, -2.0)}), "three faults");
  expect_unexplained(of_rows({other, more, wild}), "noise in a third row");
  expect_unexplained(of_rows({wild, more, right}), "noise in one of two");
  expect_unexplained(of_rows({right, more, wild}), "noise in the other");
}

/// Each chip with a fault in turn: of two chips one has another's block, and one another layer's
/// weight.
TEST_F(TwoFaults, OfChips) {
  const Torus torus(4, 1, 1);
  const std::string id = kAt + "gate", layout = "BLF_x";
  const Planted::Shards right = Planted::cut(p.value(id), layout, torus),
                        moved = Planted::cut(p.value(id), layout, torus,
                                             [](int chip) { return (chip + 1) % 4; }),
                        other = Planted::cut(of_other_weight(), layout, torus);
  for (const std::size_t a : {0U, 1U, 2U, 3U})
    for (const std::size_t b : {0U, 1U, 2U, 3U}) {
      if (a == b) continue;
      Planted::Shards shards = right;
      shards[a] = moved[a];
      shards[b] = other[b];
      const Planted::Said said = p.ask(id, layout, torus, shards);
      ASSERT_EQ(said.size(), 2U) << a << b << text(said);
      const std::size_t of_a = a < b ? 0 : 1;
      EXPECT_TRUE(said[of_a].explains && said[1 - of_a].explains) << text(said);
      EXPECT_EQ(said[of_a].fault, "another chip's block") << text(said);
      EXPECT_EQ(said[1 - of_a].fault, "another layer's weight") << text(said);
      EXPECT_TRUE(said[of_a].detail.ends_with("that of chip " + torus.name(static_cast<int>(a))))
          << text(said);
    }
}

}  // namespace
}  // namespace shardproof::diagnosis
