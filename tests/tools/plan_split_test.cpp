// `plan --split`: the two slices meet the goals, and the engine's run on both gives the tokens of
// the run on one.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

#include "tests/tools/cli_fixture.h"

namespace {

class PlanSplit : public Cli {
 protected:
  nlohmann::json plan_of(const std::string& arguments) {
    const Outcome o = run("plan --split --json " + arguments);
    EXPECT_EQ(o.code, 0) << arguments << "\n" << o.err;
    return o.code == 0 ? nlohmann::json::parse(o.out) : nlohmann::json();
  }
};

TEST_F(PlanSplit, MeetsItsGoalsAndItsProofHolds) {
  for (const char* arguments :
       {"--chips 8-64 --ttft 2s --tpot 100ms", "--chips 64 --ttft 1s --tpot 40ms --rate 0.5",
        "--model palm-tiny --torus 2x1x3 --ttft 4s --tpot 90ms --weights bf16 --batch 6,12 "
        "--context 48"}) {
    const nlohmann::json plan = plan_of(arguments);
    ASSERT_FALSE(plan.is_null());
    EXPECT_LE(plan["ttft"].get<double>(), arguments[8] == '8' ? 2.0 : 4.0) << arguments;
    EXPECT_LE(plan["tpot"].get<double>(), 0.1) << arguments;
    EXPECT_EQ(plan["chips"],
              plan["prefill"]["chips"].get<int>() + plan["decode"]["chips"].get<int>());
    EXPECT_GE(plan["transfer"].get<double>(), plan["exposed"].get<double>());
    const std::string command = plan["proof"];
    const Outcome proof = run(command.substr(std::string("shardproof ").size()));
    EXPECT_EQ(proof.code, 0) << command << "\n" << proof.out << proof.err;
  }
}

TEST_F(PlanSplit, TakesMoreChipsForHarderGoals) {
  const auto chips = [&](const std::string& goal) {
    return plan_of("--chips 8-256 --weights int8 " + goal)["chips"].get<int>();
  };
  const int easy = chips("--ttft 2s --tpot 100ms");
  EXPECT_GT(chips("--ttft 200ms --tpot 100ms"), easy);
  EXPECT_GT(chips("--ttft 2s --tpot 20ms"), easy);
  EXPECT_GT(chips("--ttft 2s --tpot 100ms --rate 4"), easy);
}

TEST_F(PlanSplit, MovesTheCachesAtTheLinksRate) {
  const std::string goals = "--torus 4x4x4 --weights int8 --ttft 2s --tpot 1s --batch 64 ";
  const double fast = plan_of(goals + "--link 10GB/s")["transfer"].get<double>();
  const double slow = plan_of(goals + "--link 5GB/s")["transfer"].get<double>();
  EXPECT_DOUBLE_EQ(slow, 2.0 * fast);
}

TEST_F(PlanSplit, GivesTheTokensOfTheRunOnOneTorus) {
  const std::string proof = plan_of("--chips 8-64 --ttft 2s --tpot 100ms")["proof"];
  std::string split = std::regex_replace(proof, std::regex("^shardproof verify"), "run --gen 5");
  const std::string one = std::regex_replace(split, std::regex(" --decode-torus \\S+"), "");
  ASSERT_NE(split, one);
  const Outcome on_two = run(split + " --seed 3"), on_one = run(one + " --seed 3");
  EXPECT_EQ(on_two.code, 0) << split << "\n" << on_two.err;
  EXPECT_EQ(on_one.code, 0) << one << "\n" << on_one.err;
  EXPECT_FALSE(on_two.out.empty());
  EXPECT_EQ(on_two.out, on_one.out);
}

TEST_F(PlanSplit, PrintsLinesOf80Columns) {
  const Outcome o = run("plan --chips 8-64 --split --ttft 2s --tpot 100ms");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* part : {"Prefill: ", "Decode: ", "Transfer: ", "Time to the first token"})
    EXPECT_NE(o.out.find(part), std::string::npos) << part;
  std::istringstream lines(o.out);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("shardproof verify")) {
      EXPECT_LE(line.size(), 80U) << line;
    }
}

TEST_F(PlanSplit, RefusesGoalsThatNothingMeetsAndFlagsWithoutEffect) {
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Outcome o = run("plan " + arguments);
    EXPECT_EQ(o.code, 2) << arguments;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  };
  refused("--chips 64 --split --ttft 1ms --tpot 50ms", "split_c2");
  refused("--chips 64 --split --ttft 1s --tpot 1ns", "nearest feasible");
  refused("--chips 64 --split --ttft 1s --tpot 1s --rate 1000000", "split_c2");
  refused("--chips 64 --split --ttft 1s", "flag_c12");
  refused("--chips 64 --split --ttft -1s --tpot 1s", "quantity_c2");
  refused("--chips 64 --split --ttft 1 --tpot 1s", "quantity_c1");
  refused("--torus 1x1x1 --model palm-tiny --chip orin-nano-8g --split --ttft 1s --tpot 1s",
          "flag_c12");
  for (const char* flags :
       {"--ttft 1s", "--tpot 1s", "--rate 1", "--link 1GB/s", "--split --latency 1s",
        "--split --minimize cost", "--split --alone", "--split --phase decode",
        "--split --volumes paper", "--split --skipped"})
    refused(std::string("--chips 64 ") + flags, "flag_c6");
}

}  // namespace
