#include "engine/cost/analysis/intensity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/cost/formulas/embeddings.h"
#include "engine/cost/graph/graph.h"
#include "tests/engine/cost/cases.h"
#include "tests/engine/cost/rounding.h"
#include "tests/weights/random_model.h"

namespace shardproof::cost {
namespace {

constexpr double kMillion = 1048576.0;  // of the figures that count in 2^20

/// With seven digits, as the figures are printed.
std::string shown(double value) { return fmt::format("{:.7g}", value); }

const Product& named(const std::vector<Product>& products, const std::string& name) {
  const auto at = std::find_if(products.begin(), products.end(),
                               [&](const Product& one) { return one.name == name; });
  EXPECT_NE(at, products.end()) << name;
  return *at;
}

/// LLaMA 7B with an FFN of two matrices: d=4096, h=32, n_ff=11008.
std::vector<Product> figures(std::int64_t tokens, std::int64_t context) {
  return products_of(parse_model("llama-7b,ffn=gelu"), {1, tokens, context});
}

/// Each published number is of several products, of n new tokens behind others in a context.
TEST(Intensity, IsThePublishedOne) {
  for (const CaseLine& line : case_lines("analysis/intensities.txt", "published")) {
    const std::vector<Product> all = figures(line.whole(1), line.whole(2));
    for (const std::string_view name : split(line.text(0), ","))
      EXPECT_EQ(shown(named(all, std::string(name)).intensity()), line.text(3))
          << name << " n=" << line.text(1) << " l=" << line.text(2);
  }
}

TEST(Intensity, FlopsOfATokenAreThePublishedOnes) {
  const std::vector<std::pair<std::int64_t, double>> table{
      {128, 9664.0}, {512, 9856.0}, {4096, 11648.0}};
  for (const auto& [length, millions] : table) {
    const std::vector<Product> layers = of_layers(figures(1, length));
    const ProductSum sum = sum_of(layers, {});
    EXPECT_EQ(sum.flops, millions * kMillion);
    EXPECT_EQ(sum.factor_elements, millions / 2 * kMillion);
    double projections = 0.0, ffn = 0.0;
    for (const char* name : {"wq", "wk", "wv", "wo"}) projections += named(layers, name).flops();
    for (const char* name : {"w_gate", "w_out"}) ffn += named(layers, name).flops();
    EXPECT_EQ(projections, 4096 * kMillion);
    EXPECT_EQ(ffn, 5504 * kMillion);
  }
}

TEST(Intensity, KeysThatHeadsShareAreReadOnce) {
  // Multiquery attention: 16 queries of one head of keys are one product.
  const std::vector<Product> all = products_of(parse_model("palm-8b"), {3, 1, 2048});
  const Product& scores = named(all, "q k^T");
  EXPECT_EQ(scores.n, 16.0);
  EXPECT_EQ(scores.times, 3.0 * 32.0);
  EXPECT_EQ(scores.factor_elements(), 3.0 * 32.0 * 256.0 * 2048.0);
  EXPECT_EQ(named(all, "wq").n, 3.0);
  EXPECT_EQ(named(all, "unembedding").n, 3.0);
}

TEST(Intensity, BytesAreThoseOfTheirTypes) {
  const Product weights{"w", Factor::weight, 2.0, 3.0, 5.0, 7.0};
  EXPECT_EQ(bytes_of(weights, {1.0, 2.0}), 7.0 * (15.0 * 1.0 + (6.0 + 10.0) * 2.0));
  const Product cache{"c", Factor::cache, 2.0, 3.0, 5.0, 7.0};
  EXPECT_EQ(bytes_of(cache, {1.0, 2.0}), 7.0 * (15.0 + 6.0 + 10.0) * 2.0);
  const Product table{"u", Factor::weight, 2.0, 3.0, 5.0, 7.0, false};
  EXPECT_EQ(bytes_of(table, {1.0, 4.0, 2.0}), 7.0 * (15.0 * 2.0 + (6.0 + 10.0) * 4.0));
}

/// Beside int8 matrices embedding and unembedding are bf16, as in the paper's runs.
TEST(Intensity, NamesTheTypeOfEmbeddings) {
  for (const NumberFormat type : {NumberFormat::f32, NumberFormat::bf16})
    EXPECT_EQ(element_bytes(type, NumberFormat::bf16).embeddings, bytes_of(type));
  const ElementBytes int8 = element_bytes(NumberFormat::int8, NumberFormat::f32);
  EXPECT_EQ(int8.weights, 1.0);
  EXPECT_EQ(int8.activations, 4.0);
  EXPECT_EQ(int8.embeddings, 2.0);
  for (const WeightRow& row : all_weights()) {
    const bool table = row.name == "embed" || row.name == "unembed";
    const bool matrix = row.kind == WeightKind::matrix;
    EXPECT_EQ(bytes_of_weight(row, NumberFormat::int8), table ? 2 : matrix ? 1 : 4) << row.name;
    EXPECT_EQ(bytes_of_weight(row, NumberFormat::bf16), matrix ? 2 : 4) << row.name;
    EXPECT_EQ(bytes_of_weight(row, NumberFormat::f32), 4) << row.name;
  }
  EXPECT_EQ(embeddings_note(NumberFormat::bf16), "");
  EXPECT_NE(
      embeddings_note(NumberFormat::int8).find("int8 weights: embedding and unembedding are bf16"),
      std::string::npos);
}

/// What no run is faster than: as many products as a loop over the mask counts, and what it must
/// read.
TEST(Intensity, AtLeastIsABound) {
  const Chip& chip = find_chip("tpu-v4");
  const ModelConfig model = parse_model("palm-8b,layers=2");
  const ElementBytes bytes = element_bytes(NumberFormat::int8, NumberFormat::bf16);
  double pairs = 0.0;
  for (int query = 100; query < 612; ++query) pairs += query + 1;
  const double matrices = 2.0 * (2 * 4096.0 * 16 * 256 + 2 * 4096.0 * 256 + 3 * 4096.0 * 16384);
  const double table = 256128.0 * 4096;
  const double flops = 2.0 * matrices * 3 * 512 + 2.0 * table * 3 + 2 * 3 * 4.0 * 16 * 256 * pairs;
  const Roofline least =
      least_of(products_of(model, {3, 512, 612}), bytes, chip, NumberFormat::bf16);
  EXPECT_NEAR(least.compute_seconds * 275e12 / flops, 1.0, 1e-14);
  EXPECT_EQ(least.memory_seconds,
            (matrices + 2.0 * table + 2.0 * 2 * 2 * 3 * 612.0 * 256) / 1200e9);
  EXPECT_TRUE(least.compute_bound());
  // Below what the products have one by one, whose scores and activations leave the chip.
  const ProductSum sum = sum_of(products_of(model, {3, 512, 612}), bytes);
  EXPECT_LT(least.compute_seconds, sum.flops / 275e12);
  EXPECT_LT(least.memory_seconds, sum.bytes / 1200e9);
}

TEST(Intensity, TheRooflineTurnsAtTheRidgePoint) {
  const Chip& chip = find_chip("tpu-v4");
  const double ridge = ridge_point(chip, NumberFormat::bf16);
  EXPECT_EQ(shown(ridge), "229.1667");
  EXPECT_TRUE(roofline_of(ridge * 1.001, 1.0, chip, NumberFormat::bf16).compute_bound());
  EXPECT_FALSE(roofline_of(ridge * 0.999, 1.0, chip, NumberFormat::bf16).compute_bound());
  const Roofline memory = roofline_of(1.0, 1200e9, chip, NumberFormat::bf16);
  EXPECT_EQ(memory.seconds(), 1.0);
  EXPECT_EQ(roofline_of(275e12, 1.0, chip, NumberFormat::bf16).seconds(), 1.0);
}

TEST(Intensity, RefusesWhatIsNoPass) {
  expect_refusals("analysis/refused.txt", "intensity", [](const CaseLine& line) {
    products_of(ModelConfig(), {line.whole(0), line.whole(1), line.whole(2)});
  });
}

RC_GTEST_PROP(Intensity, AWeightIsMultipliedOnceAToken, ()) {
  const ModelConfig model = draw_model(40);
  const std::int64_t batch = *rc::gen::inRange(1, 9), tokens = *rc::gen::inRange(1, 9);
  const std::int64_t context = tokens + *rc::gen::inRange(0, 9);
  double flops = 0.0, weights = 0.0, attention = 0.0;
  for (const Product& product : of_layers(products_of(model, {batch, tokens, context}))) {
    RC_ASSERT(product.intensity() < 2.0 * std::min({product.n, product.k, product.m}));
    (product.factor == Factor::weight ? flops : attention) += product.flops();
    if (product.factor == Factor::weight) weights += product.factor_elements();
  }
  const double parameters =
      matrix_parameters(model) - (model.tied ? 1.0 : 2.0) * static_cast<double>(model.V * model.E);
  RC_ASSERT(weights == parameters);
  RC_ASSERT(flops == 2.0 * parameters * static_cast<double>(batch * tokens));
  RC_ASSERT(attention ==
            4.0 * static_cast<double>(model.layers * batch * tokens * context * model.H * model.Q));
  double needed = 0.0, seen = 0.0;
  for (const Product& product : of_layers(products_of(model, {batch, tokens, context})))
    needed += product.needed_flops();
  for (std::int64_t last = context - tokens; last < context; ++last)
    seen += static_cast<double>(last + 1);
  const double of_pairs = 4.0 * static_cast<double>(model.layers * batch * model.H * model.Q);
  RC_ASSERT(equal_but_for_rounding(needed, flops + of_pairs * seen, 100));
}

}  // namespace
}  // namespace shardproof::cost
