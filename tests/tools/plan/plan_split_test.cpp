// `plan --split`: the two slices meet the goals, and the engine's run on both gives the tokens of
// the run on one.
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/tools/plan/plan_fixture.h"

namespace {

/// What is asked of two slices, as flags. Few strategies and numbers of rows, so that it takes
/// little time.
struct Asked {
  std::string where = "--chips 8-256", weights = "int8", ttft = "2s", tpot = "100ms";
  std::string only = "ws2d:heads,ws2d:heads-zy,ws2d:batch-yx", rows = "1,32", also = "";

  /// Those that `plan` takes with or without --split.
  std::string shared() const {
    return " --weights " + weights + " --only " + only + " " + also + " ";
  }
  std::string flags() const {
    return where + shared() + "--batch " + rows + " --ttft " + ttft + " --tpot " + tpot;
  }
};

class PlanSplit : public PlanCli {
 protected:
  nlohmann::json plan_of(const Asked& asked) { return plan_of(asked.flags()); }
  /// What is said where the goals are refused.
  std::string refusal_of(const Asked& asked) {
    const Outcome o = run("plan --split " + asked.flags());
    EXPECT_EQ(o.code, 2) << asked.flags() << "\n" << o.out;
    return o.err;
  }
  /// `plan` of one phase on chips of its own.
  Outcome alone(const std::string& phase, const std::string& where, const Asked& asked,
                const std::string& more = "") {
    // Of a decode's chips a plan counts the decode's weights in any case.
    const std::string of_phase =
        phase == "prefill" ? " --alone --prompt 1984 --batch 1 " : " --batch 1,32 ";
    return run("plan --phase " + phase + " " + where + asked.shared() + of_phase + more);
  }
  nlohmann::json fastest(const std::string& phase, const std::string& where, const Asked& asked) {
    const Outcome o = alone(phase, where, asked, "--json");
    EXPECT_EQ(o.code, 0) << o.err;
    return o.code == 0 ? nlohmann::json::parse(o.out)["choices"][0][phase] : nlohmann::json();
  }
  nlohmann::json plan_of(const std::string& arguments) { return plan("--split " + arguments); }
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
    expect_proven(plan["proof"]);
  }
}

/// A text that keys are written as has their caches, in the same layouts; other texts have theirs.
TEST_F(PlanSplit, OfATextIsProven) {
  const std::string asked =
      " --torus 2x1x3 --ttft 4s --tpot 90ms --batch 6,12 --context 48 --weights int8 "
      "--only ws1d:heads,ws2d:batch";
  const std::string file = write("m.model", run("list models --text palm-tiny").out);
  const nlohmann::json keys = plan_of("--model palm-tiny" + asked),
                       text = plan_of("--model " + file + asked);
  for (const char* member : {"cache_bytes", "transfer"}) EXPECT_EQ(text[member], keys[member]);
  for (const char* slice : {"prefill", "decode"})
    EXPECT_EQ(text[slice]["cache"], keys[slice]["cache"]);
  expect_proven(text["proof"]);
  const nlohmann::json own =
      plan_of("--model " SHARDPROOF_SOURCE
              "/tests/data/models/gemma-2.model --torus 2x1x1 --ttft 4s --tpot 4s "
              "--batch 2 --context 48 --only ws1d:heads");
  EXPECT_EQ(own["cache_bytes"], 2.0 * 2 * 6 * 8 * 24 * 2);
  expect_proven(own["proof"]);
}

TEST_F(PlanSplit, EachGoalDecidesItsOwnSlice) {
  const auto chips = [&](const Asked& asked, const char* phase) {
    return plan_of(asked)[phase]["chips"].get<int>();
  };
  const Asked easy, sooner{.ttft = "200ms"}, faster{.tpot = "20ms"};
  const int prefill = chips(easy, "prefill"), decode = chips(easy, "decode");
  EXPECT_GT(chips(sooner, "prefill"), prefill);
  EXPECT_EQ(chips(sooner, "decode"), decode);
  EXPECT_EQ(chips(faster, "prefill"), prefill);
  EXPECT_GT(chips(faster, "decode"), decode);
  const Asked often{.also = "--rate 4"};
  EXPECT_GT(plan_of(often)["chips"].get<int>(), prefill + decode);
}

/// Of one request alone the time to the first token is the prefill's.
TEST_F(PlanSplit, NoSmallerSliceMeetsAGoal) {
  const Asked asked{.ttft = "200ms", .tpot = "20ms"};
  const nlohmann::json plan = plan_of(asked);
  for (const char* phase : {"prefill", "decode"}) {
    const int chips = plan[phase]["chips"];
    const std::string most = "--latency " + (phase[0] == 'p' ? asked.ttft : asked.tpot);
    const Outcome less = alone(phase, "--chips 8-" + std::to_string(chips - 1), asked, most);
    EXPECT_EQ(less.code, 2) << less.out;
    EXPECT_NE(less.err.find("plan_c2"), std::string::npos) << less.err;
    EXPECT_EQ(alone(phase, "--chips " + std::to_string(chips), asked, most).code, 0) << phase;
  }
}

TEST_F(PlanSplit, OfEachTorusTakesTheFastestStrategy) {
  const Asked asked{.where = "--torus 4x4x4"};
  const nlohmann::json plan = plan_of(asked);
  for (const char* phase : {"prefill", "decode"}) {
    const nlohmann::json best = fastest(phase, asked.where, asked);
    EXPECT_EQ(plan[phase]["strategy"], best["strategy"]);
    EXPECT_EQ(plan[phase]["estimate"], best["estimate"]);
  }
  EXPECT_EQ(plan["ttft"], plan["prefill"]["estimate"]);
}

/// One request is prefilled at a time, however many rows decode.
TEST_F(PlanSplit, PrefillsOneRequestAtATime) {
  const nlohmann::json plan = plan_of(Asked{.where = "--torus 4x4x4", .rows = "32"});
  EXPECT_EQ(plan["prefill"]["batch"], 1);
  EXPECT_EQ(plan["decode"]["batch"], 32);
}

/// int8 weights rest on half as many chips; on as many as bf16 ones their first token is sooner.
TEST_F(PlanSplit, TakesTheWeightsOfFewerChips) {
  const auto of = [&](const std::string& where, const std::string& weights) {
    return plan_of(Asked{.where = where, .weights = weights});
  };
  const nlohmann::json fewer = of("--chips 8-256", "any");
  EXPECT_EQ(fewer["prefill"]["weights"], "int8");
  EXPECT_EQ(fewer["decode"]["weights"], "int8");
  EXPECT_EQ(fewer["chips"], of("--chips 8-256", "int8")["chips"]);
  EXPECT_LT(fewer["chips"].get<int>(), of("--chips 8-256", "bf16")["chips"].get<int>());
  const nlohmann::json bf16 = of("--torus 4x4x4", "bf16"), int8 = of("--torus 4x4x4", "int8");
  ASSERT_EQ(bf16["chips"], int8["chips"]);
  ASSERT_LT(int8["ttft"].get<double>(), bf16["ttft"].get<double>());
  EXPECT_EQ(of("--torus 4x4x4", "any")["ttft"], int8["ttft"]);
}

/// The prefill keeps its matrices otherwise than the decode: on the same chips there are both.
TEST_F(PlanSplit, EachSliceHoldsTheWeightsOfItsPhaseAlone) {
  const Asked asked{
      .where = "--torus 4x4x4", .only = "context-z:2d,ws2d:heads-zy", .also = "--model palm-62b"};
  const nlohmann::json plan = plan_of(asked);
  EXPECT_EQ(plan["prefill"]["strategy"], "context-z:2d");
  EXPECT_EQ(plan["decode"]["strategy"], "ws2d:heads-zy");
  for (const char* phase : {"prefill", "decode"})
    EXPECT_EQ(plan[phase]["memory"], fastest(phase, asked.where, asked)["memory"]["total"]);
  const Outcome both =
      run("plan --phase prefill --prompt 1984 --batch 1 --json --torus 4x4x4" + asked.shared());
  ASSERT_EQ(both.code, 0) << both.err;
  const nlohmann::json beside = nlohmann::json::parse(both.out)["choices"][0]["prefill"];
  ASSERT_EQ(beside["strategy"], "context-z:2d");
  EXPECT_LT(plan["prefill"]["memory"].get<double>(), beside["memory"]["total"].get<double>());
}

TEST_F(PlanSplit, ATokensTimeHasAShareOfTheTransfer) {
  const Asked slow{.where = "--torus 4x4x4", .also = "--link 1GB/s --gen 16 --prompt 1024"};
  const nlohmann::json plan = plan_of(slow);
  EXPECT_GT(plan["exposed"].get<double>(), 0.0);
  EXPECT_DOUBLE_EQ(plan["tpot"].get<double>(),
                   plan["decode"]["estimate"].get<double>() + plan["exposed"].get<double>() / 16.0);
  Asked half = slow;
  half.also = "--link 1GB/s --gen 16 --prompt 512";
  EXPECT_EQ(plan["cache_bytes"].get<double>(), 2.0 * plan_of(half)["cache_bytes"].get<double>());
}

TEST_F(PlanSplit, ALinkIsThatOfOneAxis) {
  const Asked axes{.where = "--torus 4x4x4", .also = "--chip tpu-v4-axes"};
  const Asked stated{.where = "--torus 4x4x4", .also = "--chip tpu-v4-axes --link 90GB/s"};
  EXPECT_EQ(plan_of(axes)["transfer"], plan_of(stated)["transfer"]);
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
  // So many rows that the decode's layouts have them on the larger torus of the prefill, too.
  split = std::regex_replace(split, std::regex("--batch \\S+"), "--batch 64");
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
  expect_80_columns(o.out, "shardproof verify");
}

/// What a refusal names is met, and nothing less: of whichever weights come nearest.
TEST_F(PlanSplit, TheNearestFeasibleIsFeasible) {
  const auto number = [](const std::string& text, const std::string& before) {
    std::smatch found;
    const bool has =
        std::regex_search(text, found, std::regex("feasible: " + before + "([0-9.]+)"));
    EXPECT_TRUE(has) << text;
    return has ? std::stod(found[1].str()) : 1.0;
  };
  const auto ms = [](double seconds) { return std::to_string(1000.0 * seconds) + "ms"; };
  const Asked hard{.where = "--chips 32,64", .weights = "any", .ttft = "1ms", .tpot = "50ms"};
  const std::string near = refusal_of(hard);
  const double ttft = number(near, "ttft="), tpot = number(near, ".* tpot=");
  Asked met = hard, less = hard;
  met.ttft = ms(1.0001 * ttft), met.tpot = ms(1.0001 * tpot);
  EXPECT_FALSE(plan_of(met).is_null());
  less.ttft = ms(0.999 * ttft);
  EXPECT_NE(refusal_of(less).find("split_c2"), std::string::npos);

  Asked many = hard;
  many.ttft = "1000s", many.also = "--rate 1000";
  const double rate = number(refusal_of(many), "below ");
  many.also = "--rate " + std::to_string(0.99 * rate);
  EXPECT_FALSE(plan_of(many).is_null());
  many.also = "--rate " + std::to_string(1.001 * rate);
  EXPECT_NE(refusal_of(many).find("keep up"), std::string::npos);
}

}  // namespace
