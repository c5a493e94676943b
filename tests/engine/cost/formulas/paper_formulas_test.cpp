// The paper's formulas against each other: volumes, their optima and crossovers, caches, MFU.
#include "engine/cost/formulas/paper_formulas.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "engine/cost/graph/graph.h"
#include "tests/engine/cost/rounding.h"
#include "weights/model/registry.h"

namespace shardproof::cost {
namespace {

/// Of a cube X, Y and Z could stand for one another: here each is another number.
TEST(PaperFormulas, VolumesOfUnequalAxes) {
  const auto at = [](FfnLayout layout) {
    return ffn_volume(layout, 60, 300, Torus(2, 3, 5)).elements(7);
  };
  EXPECT_EQ(at(FfnLayout::ws1d), 2.0 * 7 * 60);
  EXPECT_EQ(at(FfnLayout::ws2d), 2.0 * 7 * (60 / 2 + 300 / 15));
  EXPECT_EQ(at(FfnLayout::wg_x), 2.0 * 60 * 300 / 15 + 2.0 * 7 * (60 / 2));
  EXPECT_EQ(at(FfnLayout::wg_xy), 2.0 * 60 * 300 / 5 + 2.0 * 7 * (60 / 6));
  EXPECT_EQ(at(FfnLayout::wg_xyz), 2.0 * 60 * 300);
}

TEST(PaperFormulas, BytesAreOfWeightsAndOfActivations) {
  const FfnVolume volume{.weights = 3.0, .per_token = 5.0};
  EXPECT_EQ(volume.bytes(7.0, 1.0, 2.0), 3.0 + 70.0);
}

TEST(PaperFormulas, CrossoversOfLinesThroughTheOrigin) {
  const auto of = [](FfnLayout layout) { return ffn_volume(layout, 16384, 65536, Torus(4, 4, 4)); };
  // 1D and 2D are lines through the origin, and 2D is the lower one at every batch.
  EXPECT_EQ(crossover(of(FfnLayout::ws1d), of(FfnLayout::ws2d)), 0);
  EXPECT_TRUE(std::isinf(crossover(of(FfnLayout::ws1d), of(FfnLayout::ws1d))));
}

TEST(PaperFormulas, BatchBlocksOfUnequalAxes) {
  const Torus torus(2, 3, 5);
  EXPECT_EQ(batch_blocks(FfnLayout::ws1d, torus), 1);
  EXPECT_EQ(batch_blocks(FfnLayout::ws2d, torus), 1);
  EXPECT_EQ(batch_blocks(FfnLayout::wg_x, torus), 2);
  EXPECT_EQ(batch_blocks(FfnLayout::wg_xy, torus), 6);
  EXPECT_EQ(batch_blocks(FfnLayout::wg_xyz, torus), 30);
}

/// No volume and no optimum below takes more rounded operations, one after another: products of
/// whole numbers are below 2^53 and exact; beside them a volume has a quotient, a sum and a
/// product, an optimum a quotient, a root and a product, and a volume at an optimum these and two
/// more.
constexpr int kOperationsOfAVolume = 8;

/// Sizes on a torus of unequal axes, 1 and odd ones among them.
struct Drawn {
  Torus torus{*rc::gen::inRange(1, 9), *rc::gen::inRange(1, 9), *rc::gen::inRange(1, 9)};
  std::int64_t E = *rc::gen::inRange(1, 20000), F = *rc::gen::inRange(1, 80000);
  double tokens = *rc::gen::inRange(1, 2000000);

  double volume(FfnLayout layout) const { return ffn_volume(layout, E, F, torus).elements(tokens); }
};

RC_GTEST_PROP(PaperFormulas, TwoLayoutsMoveAsMuchAtTheirCrossover, ()) {
  const Drawn d;
  const auto pick = [] {
    return *rc::gen::element(FfnLayout::ws1d, FfnLayout::ws2d, FfnLayout::wg_x, FfnLayout::wg_xy,
                             FfnLayout::wg_xyz);
  };
  const FfnVolume a = ffn_volume(pick(), d.E, d.F, d.torus);
  const FfnVolume b = ffn_volume(pick(), d.E, d.F, d.torus);
  const double tokens = crossover(a, b);
  if (std::isinf(tokens)) return;
  // Two differences of numbers as they are, which are not computed further, and their quotient;
  // then a product and a sum.
  RC_ASSERT(equal_but_for_rounding(a.elements(tokens), b.elements(tokens), 5));
}

RC_GTEST_PROP(PaperFormulas, NoTorusMovesLessThanTheOptimum, ()) {
  const Drawn d;
  const double chips = d.torus.chips();
  const auto E = static_cast<double>(d.E), F = static_cast<double>(d.F);
  const double best = d.tokens * least_ws2d(chips, E, F);
  RC_ASSERT(no_more_but_for_rounding(best, d.volume(FfnLayout::ws2d), kOperationsOfAVolume));
  // It is reached at best_x, of which the other chips are over F.
  const double X = best_x(chips, E, F);
  const double reached = 2.0 * d.tokens * (E / X + F * X / chips);
  RC_ASSERT(equal_but_for_rounding(reached, best, kOperationsOfAVolume));
}

RC_GTEST_PROP(PaperFormulas, NoGatheringMovesLessThanTheOptimum, ()) {
  const Drawn d;
  const double chips = d.torus.chips();
  const auto E = static_cast<double>(d.E), F = static_cast<double>(d.F);
  const double best = least_gathered(chips, E, F, d.tokens);
  for (const FfnLayout layout : {FfnLayout::wg_x, FfnLayout::wg_xy})
    RC_ASSERT(no_more_but_for_rounding(best, d.volume(layout), kOperationsOfAVolume));
  const double N = best_gathered(chips, F, d.tokens);
  const double reached = 2.0 * E * F * N / chips + 2.0 * d.tokens * E / N;
  RC_ASSERT(equal_but_for_rounding(reached, best, kOperationsOfAVolume));
}

TEST(PaperFormulas, Caches) {
  const CacheSizes sizes{.layers = 3, .H = 8, .Q = 16, .element_bytes = 2};
  const double row = 2.0 * 3 * 16 * 2;  // K and V of one position, head and row
  EXPECT_EQ(cache_bytes(sizes, CacheLayout::multihead, 4, 10, 7), row * 10 * 7 * 2);
  EXPECT_EQ(cache_bytes(sizes, CacheLayout::multihead, 64, 10, 7), row * 10 * 7);
  EXPECT_EQ(cache_bytes(sizes, CacheLayout::multiquery_heads, 4, 10, 7), row * 10 * 7);
  EXPECT_EQ(cache_bytes(sizes, CacheLayout::multiquery_batch, 4, 10, 7), row * 3 * 7);
  EXPECT_EQ(longest_context(sizes, CacheLayout::multiquery_batch, 4, 10, row * 3 * 7), 7);
}

TEST(PaperFormulas, CostIsOneOverMfu) {
  const double utilization = mfu(540e9, 1048576, 64, 275e12, 85.2);
  EXPECT_NEAR(utilization, 0.755, 0.0005);
  EXPECT_DOUBLE_EQ(chip_seconds(1048576, 64, 85.2),
                   chip_seconds_of_mfu(540e9, 275e12, utilization));
}

RC_GTEST_PROP(PaperFormulas, ParametersAreTheElementsOfTheMatrices, ()) {
  ModelConfig model = parse_model("palm-tiny");
  model.layers = *rc::gen::inRange(1, 4);
  model.E = *rc::gen::inRange(1, 20);
  model.F = *rc::gen::inRange(1, 20);
  model.K = *rc::gen::inRange(1, 4);
  model.H = model.K * *rc::gen::inRange(1, 5);
  model.Q = 2 * *rc::gen::inRange(1, 5);
  model.V = *rc::gen::inRange(1, 50);
  model.ffn = *rc::gen::element(Ffn::swiglu, Ffn::geglu, Ffn::gelu, Ffn::gelu_erf);
  model.block = *rc::gen::element(Block::parallel, Block::serial);
  model.tied = *rc::gen::arbitrary<bool>();
  double elements = 0.0;
  for (const WeightSpec& spec : weight_specs(model))
    if (spec.matrix) {
      double size = 1.0;
      for (const std::int64_t dim : spec.shape) size *= static_cast<double>(dim);
      elements += size;
    }
  RC_ASSERT(matrix_parameters(model) == elements);
}

}  // namespace
}  // namespace shardproof::cost
