// `plan --search`: what it finds is no worse than what ships, and its proof is one.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/plan/plan_fixture.h"

namespace {

class PlanSearch : public PlanCli {};

TEST_F(PlanSearch, FindsTablesThatVerifyProves) {
  for (const char* arguments :
       {"--torus 4x2x3 --batch 24 --phase decode --model palm-tiny",
        "--torus 2x1x3 --batch 6 --model gptj --context 48 --gen 24",
        "--torus 2x2x2 --batch 1 --phase prefill --model palm-tiny,K=6 --context 48 "
        "--weights int8"}) {
    const std::string file = path("found.layouts").string();
    const nlohmann::json search = plan("--search --out " + file + " " + arguments)["search"];
    EXPECT_FALSE(search["tables"].empty());
    for (const nlohmann::json& table : search["tables"]) {
      EXPECT_LE(table["estimate"].get<double>(), table["shipped_estimate"].get<double>()) << table;
      EXPECT_NE(slurp(file).find(table["layouts"].get<std::string>()), std::string::npos) << table;
    }
    expect_proven(search["proof"]);
  }
}

/// A search takes seconds as the plan does, on a chip whose hops take time as well.
TEST_F(PlanSearch, EstimatesShippedTablesAsThePlanDoes) {
  const nlohmann::json found = plan(
      "--search --chip tpu-v4-axes --torus 2x2x2 --batch 8 --phase decode --model palm-tiny "
      "--context 48 --top 1000");
  const nlohmann::json& table = found["search"]["tables"][0];
  int seen = 0;
  for (const nlohmann::json& choice : found["choices"]) {
    const nlohmann::json& step = choice["decode"];
    if (choice["weights"] != found["choices"][0]["weights"] || step["strategy"] != table["shipped"])
      continue;
    ++seen;
    EXPECT_GT(step["hops"].get<double>(), 0.0);
    EXPECT_NEAR(table["shipped_estimate"].get<double>() / step["estimate"].get<double>(), 1.0, 1e-9)
        << table;
  }
  EXPECT_EQ(seen, 1) << table;
}

TEST_F(PlanSearch, PrintsTheTable) {
  const Outcome o =
      run("plan --search --torus 2x2x2 --batch 8 --phase decode --model palm-tiny --context 48");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* part : {"Search, one pass of decode on 2x2x2", "layouts searched:decode\nin : ",
                           "With --out FILE", "shardproof verify "})
    EXPECT_NE(o.out.find(part), std::string::npos) << part << "\n" << o.out;
  expect_80_columns(o.out, "shardproof verify");
}

}  // namespace
