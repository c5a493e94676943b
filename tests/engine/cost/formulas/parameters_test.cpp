#include "engine/cost/formulas/parameters.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>

#include "engine/strategies/strategy.h"
#include "tests/engine/cost/cases.h"
#include "tests/weights/random_model.h"
#include "weights/model/presets.h"
#include "weights/model/registry.h"

namespace shardproof::cost {
namespace {

Parameters of(const char* model) { return parameters_of(parse_model(model)); }

TEST(Parameters, AreCountedByGroup) {
  const Parameters p = of("palm-tiny");  // 2 layers, E=96, F=384, H=24, K=1, Q=8, V=264
  EXPECT_EQ(p.embedding, 264 * 96);
  EXPECT_EQ(p.unembedding, 0);
  EXPECT_EQ(p.query, 2 * 96 * 24 * 8);
  EXPECT_EQ(p.key_value, 2 * 2 * 96 * 8);
  EXPECT_EQ(p.output, 2 * 24 * 8 * 96);
  EXPECT_EQ(p.ffn_in, 2 * 2 * 96 * 384);
  EXPECT_EQ(p.ffn_out, 2 * 384 * 96);
  EXPECT_EQ(p.norms, 2 * 96 + 96);
  EXPECT_EQ(p.biases, 0);
  EXPECT_EQ(of("gptj,layers=1").biases, 2 * 0 + 384 + 96 + 264);
  EXPECT_EQ(of("llama,layers=1").unembedding, 264 * 96);
}

TEST(Parameters, AreThoseOfPublishedModels) {
  for (const CaseLine& line : case_lines("formulas/parameters.txt", "matrices"))
    EXPECT_EQ(of(line.text(0).c_str()).matrices(), line.whole(1)) << line.text(0);
  for (const CaseLine& line : case_lines("formulas/parameters.txt", "total"))
    EXPECT_EQ(of(line.text(0).c_str()).total(), line.whole(1)) << line.text(0);
  // 137 billion without the tables.
  EXPECT_EQ(of("lamda-137b").of_layers(), 137438953472);
}

RC_GTEST_PROP(Parameters, AreAllWeightsOfTheRegistry, ()) {
  const ModelConfig model = draw_model(40);
  std::int64_t elements = 0;
  for (const WeightSpec& spec : weight_specs(model)) {
    if (spec.dims == "PJ" || spec.name == "alibi_slopes") continue;
    std::int64_t product = 1;
    for (std::int64_t extent : spec.shape) product *= extent;
    elements += product;
  }
  RC_ASSERT(parameters_of(model).total() == elements);
}

TEST(Parameters, OfPublishedModelsAreDividedByTheTorusTheyName) {
  for (const Preset& preset : all_presets()) {
    if (!preset.published) continue;  // the standard matrix runs the others
    const ModelConfig model = parse_model(preset.name);
    const Torus torus = Torus::parse(preset.divides);
    for (const Strategy& strategy : all_strategies())
      EXPECT_NO_THROW(require_legal(strategy, model, torus, smallest_batch(strategy, torus)))
          << preset.name << " on " << preset.divides << " with " << strategy.to_string();
  }
}

}  // namespace
}  // namespace shardproof::cost
