#include "engine/layout/layout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "engine/shards/sharded.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/run_program.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

using Chips = ChipArrays<float>;

TEST(Layout, ReadsThePapersNotation) {
  const Layout layout = Layout::parse("B_xLE_zy");
  EXPECT_EQ(layout.letters(), "BLE");
  EXPECT_EQ(layout.axes('E').to_string(), "zy");
  EXPECT_EQ(layout.axes('L').to_string(), "");
  EXPECT_EQ(layout.axes_or_none('E').to_string(), "zy");
  EXPECT_EQ(layout.axes_or_none('F').to_string(), "");
  EXPECT_EQ(message_of([&] { layout.axes('F'); }),
            "layout_c4: " + layout.to_string() + " has no dim F");
  EXPECT_EQ(layout.used().to_string(), "xyz");
  EXPECT_FALSE(layout.is_partial());
  EXPECT_EQ(Layout::parse("BLE_x partialsum-zy").to_string(), "BLE_x partialsum-yz");
  EXPECT_FALSE(Layout::parse("E_yz") == Layout::parse("E_zy"));
}

TEST(Layout, MayBeAPartialMaximum) {
  const Layout most = Layout::parse("BL_z partialmax-yx");
  EXPECT_EQ(most.to_string(), "BL_z partialmax-xy");
  EXPECT_TRUE(most.is_partial() && most.is_partial_max());
  EXPECT_EQ(most.used().to_string(), "xyz");
  EXPECT_FALSE(most == Layout::parse("BL_z partialsum-xy"));
  EXPECT_EQ(most.with_partial(Axes::parse("y")).to_string(), "BL_z partialmax-y");
  EXPECT_EQ(most.with_axes(1, {}).to_string(), "BL partialmax-xy");
  EXPECT_EQ(most.with_partial({}), Layout::parse("BL_z"));
  EXPECT_FALSE(Layout::parse("BLE_x partialsum-zy").is_partial_max());
  EXPECT_EQ(Layout(most.dims(), {}, true), Layout::parse("BL_z"));
  EXPECT_EQ(label_of([] { Layout::parse("BLE partialmax-"); }), "layout_c0");
  EXPECT_EQ(label_of([] { Layout::parse("BE_x partialmax-x"); }), "layout_c3");
}

TEST(Layout, HasAnyLettersButThoseOfAxes) {
  const Layout layout = Layout::parse("K_xgE_zyaG");
  EXPECT_EQ(layout.to_string(), "K_xgE_zyaG");
  EXPECT_EQ(layout.letters(), "KgEaG");
  EXPECT_EQ(layout.axes('K').to_string(), "x");
}

TEST(Layout, RefusesWhatIsNone) {
  for (const char* text :
       {"\nBLE", "BLE\n", "B\tL", "B1", "BL E", "B_", "B_xL_", "BL,E", "BLE partialsum-",
        "BLE partialsum", "BLE  partialsum-x", "BLEpartialsum-x", "_x", "4"})
    EXPECT_EQ(label_of([&] { Layout::parse(text); }), "layout_c0") << text;
  EXPECT_EQ(label_of([] { Layout::parse("BxE"); }), "layout_c1");
  EXPECT_EQ(label_of([] { Layout::parse("BLB"); }), "layout_c2");
  EXPECT_EQ(label_of([] { Layout::parse("B_xE_x"); }), "layout_c3");
  EXPECT_EQ(label_of([] { Layout::parse("BE_x partialsum-x"); }), "layout_c3");
  EXPECT_EQ(label_of([] { Layout::parse("BE_w"); }), "axes_c1");
  EXPECT_EQ(label_of([] { Layout::parse("BE_xx"); }), "axes_c2");
  EXPECT_EQ(message_of([] { Layout::parse("B_xE_yx"); }),
            "layout_c3: axis x appears twice in B_xE_yx");
}

TEST(Layout, AShardMustDivide) {
  const auto local = [] { return local_shape(Layout::parse("BE_zy"), {2, 16}, Torus(4, 2, 3)); };
  EXPECT_EQ(message_of(local), "local_c1: E=16 of BE_zy is not divisible by zy=6 on torus 4x2x3");
  EXPECT_EQ(label_of([] { shard(tensor_of({3}), Layout::parse("E_y"), Torus(4, 2, 3)); }),
            "local_c1");
}

TEST(Layout, ChipXyzHoldsTheBlockItsSubscriptSays) {
  // In F_yzx chip (x,y,z) holds block (y·Z+z)·X+x, here one element.
  const Sharded f = shard(tensor_of({24}), Layout::parse("F_yzx"), Torus(4, 2, 3));
  for (int x = 0; x < 4; ++x)
    for (int y = 0; y < 2; ++y)
      for (int z = 0; z < 3; ++z)
        EXPECT_EQ(f.f32()[static_cast<std::size_t>((x * 2 + y) * 3 + z)],
                  (std::vector{static_cast<float>((y * 3 + z) * 4 + x)}));
}

TEST(Layout, ShardsByEye) {
  const Torus torus(1, 2, 3);  // chips (0,0,0) (0,0,1) (0,0,2) (0,1,0) (0,1,1) (0,1,2)
  const auto shards = [&](const char* layout, const Shape& shape) {
    return shard(tensor_of(shape), Layout::parse(layout), torus).f32();
  };
  EXPECT_EQ(shards("E_yz", {6}), (Chips{{0}, {1}, {2}, {3}, {4}, {5}}));
  EXPECT_EQ(shards("E_zy", {6}), (Chips{{0}, {2}, {4}, {1}, {3}, {5}}));
  EXPECT_EQ(shards("E_z", {3}), (Chips{{0}, {1}, {2}, {0}, {1}, {2}}));
  EXPECT_EQ(shards("E_xy", {4}), (Chips{{0, 1}, {0, 1}, {0, 1}, {2, 3}, {2, 3}, {2, 3}}));
  // 0 1 2   rows over y, columns over z
  // 3 4 5
  EXPECT_EQ(shards("B_yE_z", {2, 3}), (Chips{{0}, {1}, {2}, {3}, {4}, {5}}));
  EXPECT_EQ(shards("BE_z", {2, 3}), (Chips{{0, 3}, {1, 4}, {2, 5}, {0, 3}, {1, 4}, {2, 5}}));
}

RC_GTEST_PROP(LayoutLaw, ParseInvertsPrint, ()) {
  std::string letters;
  for (char c : std::string("BLMNTEFHKQVCSRPJW"))
    if (draw_int(0, 3) == 0) letters += c;
  const Layout layout = draw_layout(letters, true);
  RC_CLASSIFY(layout.is_partial(), "partial");
  RC_PRE(!(letters.empty() && layout.is_partial()));  // a partial scalar has no text of its own
  RC_ASSERT(Layout::parse(layout.to_string()) == layout);
}

RC_GTEST_PROP(LayoutLaw, AnyTextIsALayoutOrAnError, ()) {
  std::string text;
  for (int i = draw_int(0, 8); i > 0; --i)
    text += *rc::gen::element<std::string>("B", "E", "_", "x", "y", "z", "X", "w", " ",
                                           " partialsum-", " partialmax-", "-");
  const std::string label = label_of([&] { Layout::parse(text); });
  RC_CLASSIFY(label.empty(), "a layout");
  if (label.empty()) {
    const Layout layout = Layout::parse(text);
    RC_ASSERT(layout.rank() == 0 || Layout::parse(layout.to_string()) == layout);
  } else {
    RC_ASSERT(label.starts_with("layout_c") || label.starts_with("axes_c"));
  }
}

RC_GTEST_PROP(LayoutLaw, AssembleInvertsShard, ()) {
  const Torus torus = draw_torus();
  const Layout layout = draw_layout("BLE");
  const Tensor tensor = tensor_of(draw_shape(torus, 3));
  RC_ASSERT(assemble(shard(tensor, layout, torus)).data == tensor.data);
}

// The rule of section 3 of the specification, element by element and without the engine's boxes.
RC_GTEST_PROP(LayoutLaw, EveryElementLiesWhereTheSubscriptsSay, ()) {
  const Torus torus = draw_torus();
  const Layout layout = draw_layout("BE");
  const Shape shape = draw_shape(torus, 2);
  const Sharded value = shard(tensor_of(shape), layout, torus);
  const Shape local = value.local();
  for (int chip = 0; chip < torus.chips(); ++chip)
    for (std::int64_t b = 0; b < local[0]; ++b)
      for (std::int64_t e = 0; e < local[1]; ++e) {
        const std::int64_t row = torus.block(chip, layout.axes('B')) * local[0] + b;
        const std::int64_t column = torus.block(chip, layout.axes('E')) * local[1] + e;
        const float found =
            value.f32()[static_cast<std::size_t>(chip)][static_cast<std::size_t>(b * local[1] + e)];
        RC_ASSERT(found == static_cast<float>(row * shape[1] + column));
      }
}

}  // namespace
}  // namespace shardproof
