// The paper's formulas against the programs of its layouts, counted as the paper counts.
#include "engine/cost/work/paper_volumes.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/cost/formulas/paper_formulas.h"

namespace shardproof::cost {
namespace {

TEST(PaperVolumes, OfTheLayoutsProgramsAreThePapersFormulas) {
  for (const char* text : {"4x2x3", "2x3x4", "1x4x2", "3x2x1", "5x1x1"}) {
    const Torus torus = Torus::parse(text);
    const int X = torus.size(Axis::x), Y = torus.size(Axis::y), n = torus.chips();
    for (const char* block : {"parallel", "serial"}) {
      ModelConfig model = parse_model(std::string("palm-tiny,block=") + block);
      model = with_dims(model, 2 * n, 6 * n, n, 1, n);
      const Pass pass{Phase::prefill, 2 * n, 7, 0};
      const auto volume = [&](const char* name) {
        return paper_volume(Strategy::parse(name), model, torus, pass);
      };
      const auto formula = [&](FfnLayout layout) {
        return ffn_volume(layout, model.E, model.F, torus).elements(pass.tokens());
      };
      const std::string where = std::string(text) + " " + block;
      if (X > 1 && n > X) {
        EXPECT_DOUBLE_EQ(volume("ws2d:heads"), formula(FfnLayout::ws2d)) << where;
        EXPECT_DOUBLE_EQ(volume("ws2d:batch"), formula(FfnLayout::ws2d)) << where;
        EXPECT_DOUBLE_EQ(volume("wg-x"), formula(FfnLayout::wg_x)) << where;
      }
      if (Y > 1 && n > X * Y) {
        EXPECT_DOUBLE_EQ(volume("wg-xy"), formula(FfnLayout::wg_xy)) << where;
      }
      EXPECT_DOUBLE_EQ(volume("ws1d:heads"), formula(FfnLayout::ws1d)) << where;
      EXPECT_DOUBLE_EQ(volume("wg-xyz"), formula(FfnLayout::wg_xyz)) << where;
      EXPECT_DOUBLE_EQ(volume("dp"), 0.0) << where;
    }
  }
}

TEST(PaperVolumes, DoNotDependOnTheFfn) {
  const Torus torus = Torus::parse("2x2x3");
  const Pass pass{Phase::prefill, 12, 5, 0};
  const double gated = paper_volume(Strategy::parse("ws2d"), parse_model("palm-tiny"), torus, pass);
  for (const char* model : {"palm-tiny,ffn=gelu", "palm-tiny,K=24", "palm-tiny,norm=layernorm",
                            "palm-tiny,bias=all", "palm-tiny,block=serial"})
    EXPECT_EQ(paper_volume(Strategy::parse("ws2d"), parse_model(model), torus, pass), gated);
}

}  // namespace
}  // namespace shardproof::cost
