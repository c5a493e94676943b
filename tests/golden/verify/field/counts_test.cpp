// What the bound is made of, of a run on one chip: the engine and the unsharded model, which count
// by themselves, ask for the same, or the engine for more.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/run/inference.h"
#include "golden/memo/oracle_memo.h"
#include "golden/verdict/field_equality.h"

namespace shardproof {
namespace {

struct Both {
  FieldCounts engine, oracle;
};

Both counts_of_case(const Case& c) {
  const RunPlan plan = make_plan(c);
  const auto field = std::make_shared<const Field>(FieldSetting{.seed = 7});
  OracleMemo memo;
  const auto known = memo.of_field(plan, field->setting());
  Threads threads(1);
  run_inference(plan, Weights(c.model, {}), known->ids, threads, nullptr, {}, {}, nullptr, field);
  return {field->counts(), counts_of(known->answer)};
}

/// The largest a, and the largest e of each layer.
FieldDegree greatest(const FieldCounts& counts) {
  FieldDegree most{.a = 0, .e = {}};
  for (const FieldDegree& degree : counts.degrees) {
    most.a = std::max(most.a, degree.a);
    for (const auto& [layer, e] : degree.e)
      if (e > 0) most.e[layer] = std::max(most.e[layer], e);
  }
  return most;
}

TEST(FieldCounts, OfEngineAndUnshardedModelAreTheSame) {
  for (const char* model :
       {"E=4,F=3,V=3", "E=4,F=3,V=200", "E=4,F=3,V=3,norm=layernorm,bias=all,ffn=geglu",
        "E=4,F=3,V=3,block=serial,rope=alibi,ffn=gelu", "E=4,F=3,V=3,tied=false,ffn=gelu-erf",
        "E=4,F=3,V=3,rope=interleaved,unembed_bias=true"})
    for (const char* keys : {"", "act=bf16", "weights=int8"}) {
      const std::string line = fmt::format(
          "torus=1x1x1 regime=field batch=2 prompt=3 gen=3 {} model=palm-tiny,layers=2,"
          "H=2,Q=4,{}",
          keys, model);
      Both both = counts_of_case(parse_case(line));
      const FieldDegree engine = greatest(both.engine), oracle = greatest(both.oracle);
      EXPECT_EQ(engine.e, oracle.e) << line;
      // The engine counts the ones that it sums with, and scales of 1, as if they were variables.
      EXPECT_GE(engine.a, oracle.a) << line;
      // Of the list of all ids: V functions, and the powers of rho.
      EXPECT_GE(engine.a, parse_case(line).model.V + 1) << line;
      // Every row, head and token of both layers: 2 · (3 + 1 + 1) · 2.
      EXPECT_EQ(both.engine.inverted, (std::map<int, std::int64_t>{{0, 20}, {1, 20}})) << line;
      EXPECT_EQ(both.oracle.inverted, both.engine.inverted) << line;
      // Of each key the engine looks the hash of its query's max up anew, and it norms the last
      // token alone before the logits.
      for (const auto& [name, times] : both.oracle.applied) {
        const std::int64_t asked = both.engine.applied[name];
        EXPECT_TRUE(asked >= times || name.starts_with("norm") || name == "bf16")
            << name << ": " << asked << " and " << times << " of " << line;
        if (name == "score to exp" || name == "score to max" || name == "logit") {
          EXPECT_EQ(asked, times) << name << " of " << line;
        }
      }
    }
}

// Where chips have blocks of the vocabulary, the list of all is still of all.
TEST(FieldCounts, OfListsAreOfTheWholeVocabulary) {
  const Case c = parse_case(
      "torus=2x1x1 regime=field batch=2 prompt=1 gen=2 model=palm-tiny,layers=1,E=4,F=4,H=2,Q=2,"
      "V=200");
  EXPECT_EQ(greatest(counts_of_case(c).engine).a, c.model.V + 1);
}

}  // namespace
}  // namespace shardproof
