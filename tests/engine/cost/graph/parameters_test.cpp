#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <map>
#include <string>

#include "engine/cost/graph/graph.h"
#include "engine/strategies/strategy.h"
#include "tests/engine/cost/cases.h"
#include "tests/weights/random_model.h"
#include "weights/model/presets.h"
#include "weights/model/registry.h"

namespace shardproof::cost {
namespace {

/// The elements of each weight that is a parameter, and of all under "".
std::map<std::string, std::int64_t> of(const ModelConfig& model) {
  std::map<std::string, std::int64_t> all;
  for (const WeightElements& one : weight_elements(*graph_of(model)))
    if (is_parameter(one)) {
      all[one.name] = one.elements;
      all[""] += one.elements;
    }
  return all;
}

TEST(Parameters, AreCountedByWeight) {
  auto p = of(parse_model("palm-tiny"));  // 2 layers, E=96, F=384, H=24, K=1, Q=8, V=264
  const std::map<std::string, std::int64_t> expected{{"embed", 264 * 96},
                                                     {"norm", 2 * 96},
                                                     {"wq", 2 * 96 * 24 * 8},
                                                     {"wk", 2 * 96 * 8},
                                                     {"wv", 2 * 96 * 8},
                                                     {"wo", 2 * 24 * 8 * 96},
                                                     {"w_gate", 2 * 96 * 384},
                                                     {"w_up", 2 * 96 * 384},
                                                     {"w_out", 2 * 384 * 96},
                                                     {"final_norm", 96},
                                                     {"", p[""]}};
  EXPECT_EQ(p, expected);
  EXPECT_EQ(of(parse_model("llama,layers=1"))["unembed"], 264 * 96);
}

TEST(Parameters, AreThoseOfPublishedModels) {
  for (const CaseLine& line : case_lines("graph/parameters.txt", "matrices"))
    EXPECT_EQ(matrix_parameters(parse_model(line.text(0))), line.number(1)) << line.text(0);
  for (const CaseLine& line : case_lines("graph/parameters.txt", "total"))
    EXPECT_EQ(of(parse_model(line.text(0)))[""], line.whole(1)) << line.text(0);
  // 137 billion without the tables.
  EXPECT_EQ(matrix_parameters(parse_model("lamda-137b")), 137438953472.0 + 2.0 * 32000 * 8192);
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
  RC_ASSERT(of(model)[""] == elements);
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
