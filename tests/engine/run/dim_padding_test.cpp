#include "engine/run/dim_padding.h"

#include <gtest/gtest.h>

#include "engine/run/plan.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

Case with_pads(const std::string& model, std::int64_t heads, std::int64_t vocab = 0) {
  Case c = parse_case("torus=1x1x1 model=" + model);
  c.pad_heads = heads, c.pad_vocab = vocab;
  return c;
}

std::string refusal(const Case& c) {
  return message_of([&] { require_padding(c); });
}

TEST(DimPadding, KeepsTheSizeOfAGroup) {
  const auto heads = [](const std::string& model, std::int64_t N) {
    const ModelConfig placed = placed_model(with_pads(model, N));
    return Shape{placed.H, placed.K};
  };
  EXPECT_EQ(heads("palm-tiny,H=20,K=5", 24), (Shape{24, 6}));    // groups of four
  EXPECT_EQ(heads("palm-tiny,H=20,K=20", 24), (Shape{24, 24}));  // multihead stays so
  EXPECT_EQ(heads("palm-tiny,H=20,K=1", 23), (Shape{23, 1}));    // one group, of all
  EXPECT_EQ(heads("palm-tiny,H=1,K=1", 4), (Shape{4, 1}));
  EXPECT_EQ(heads("palm-tiny,H=20,K=5", 0), (Shape{20, 5}));
}

TEST(DimPadding, ChangesNothingElseOfTheModel) {
  Case c = with_pads("palm-tiny,H=20,K=5,V=250", 24, 264);
  ModelConfig own = placed_model(c);
  EXPECT_EQ(own.V, 264);
  own.H = 20, own.K = 5, own.V = 250;
  EXPECT_EQ(own, c.model);
  c.pad_heads = c.pad_vocab = 0;
  EXPECT_EQ(placed_model(c), c.model);
}

TEST(DimPadding, RefusesWhatIsBelowOrSplitsAGroup) {
  EXPECT_EQ(refusal(with_pads("palm-tiny,H=20,K=5,V=250", 24, 264)), "");
  EXPECT_EQ(refusal(with_pads("palm-tiny,H=20,K=5,V=250", 20, 250)), "");
  EXPECT_EQ(refusal(with_pads("palm-tiny,H=20,K=5", 16)),
            "case_pad: pad_heads=16 is below the model's H=20; the nearest legal: pad_heads=20");
  EXPECT_EQ(refusal(with_pads("palm-tiny,V=250", 0, 249)),
            "case_pad: pad_vocab=249 is below the model's V=250; the nearest legal: pad_vocab=250");
  const auto nearest = [](std::int64_t N) {
    const std::string text = refusal(with_pads("palm-tiny,H=20,K=5", N));
    return text.substr(text.rfind('=') + 1);
  };
  EXPECT_EQ(refusal(with_pads("palm-tiny,H=20,K=5", 23)),
            "case_pad: pad_heads=23 is not a multiple of the 4 query heads of a group (H=20, K=5); "
            "the nearest legal: pad_heads=24");
  EXPECT_EQ(nearest(21), "20");
  EXPECT_EQ(nearest(22), "20");  // of two the smaller
  EXPECT_EQ(nearest(25), "24");
  // Heads so many that no model has them.
  const std::string large = refusal(with_pads("palm-tiny,E=2147483647,F=1,Q=4", 1 << 30));
  EXPECT_TRUE(large.starts_with("case_pad: pad_heads=1073741824: ")) << large;
  EXPECT_TRUE(large.ends_with("legal: pad_heads=24")) << large;
}

TEST(DimPadding, IsRefusedWithTheCase) {
  EXPECT_EQ(label_of([] { make_plan(with_pads("palm-tiny,V=250", 0, 249)); }), "case_pad");
}

TEST(DimPadding, PutsATensorAtTheBeginningOfALongerOne) {
  Tensor t(Shape{2, 2, 3});
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<float>(i + 1);
  const Tensor longer = padded(t, {3, 3, 4}, -1.0F);
  ASSERT_EQ(longer.shape, (Shape{3, 3, 4}));
  std::int64_t i = 0, own = 0;
  for (std::int64_t a = 0; a < 3; ++a)
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t c = 0; c < 4; ++c, ++i)
        EXPECT_EQ(longer.data[static_cast<std::size_t>(i)],
                  a < 2 && b < 2 && c < 3 ? static_cast<float>(++own) : -1.0F)
            << a << b << c;
  EXPECT_EQ(padded(t, t.shape, 0.0F).data, t.data);
  EXPECT_EQ(padded(Tensor(Shape{0, 2}), {0, 3}, 0.0F).shape, (Shape{0, 3}));
}

/// Layouts and moves are those of the longer dims, prompts and positions the model's.
TEST(DimPadding, IsWhatPlansAreMadeFor) {
  const RunPlan plan =
      make_plan(parse_case("torus=4x2x3 model=palm-tiny,H=20,K=5,V=250 prefill=ws2d:heads "
                           "decode=ws2d:batch pad_heads=24 pad_vocab=264"));
  const RunPlan longer =
      make_plan(parse_case("torus=4x2x3 model=palm-tiny,H=24,K=6,V=264 prefill=ws2d:heads "
                           "decode=ws2d:batch"));
  EXPECT_EQ(plan.placed, longer.source_case.model);
  EXPECT_EQ(longer.placed, longer.source_case.model);
  EXPECT_EQ(plan.prefill.layer, longer.prefill.layer);
  EXPECT_EQ(plan.decode.layer, longer.decode.layer);
  EXPECT_EQ(plan.hand_over, longer.hand_over);
}

}  // namespace
}  // namespace shardproof
