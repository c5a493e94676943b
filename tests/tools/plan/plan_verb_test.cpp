// The verb `plan`: what it chooses, what it prints, and that its proof is one.
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/tools/cli_fixture.h"

namespace {

class PlanVerb : public Cli {
 protected:
  nlohmann::json plan(const std::string& arguments) const {
    const Outcome o = run("plan --json " + arguments);
    EXPECT_EQ(o.code, 0) << arguments << "\n" << o.err;
    return o.code == 0 ? nlohmann::json::parse(o.out) : nlohmann::json();
  }
  /// The strategies of the first choice that are given a phase's name.
  std::string chosen(const std::string& arguments, const std::string& phase) const {
    const nlohmann::json found = plan(arguments);
    return found.is_null() ? "" : found["choices"][0][phase]["strategy"].get<std::string>();
  }
};

TEST_F(PlanVerb, ChoosesWhatThePaperChose) {
  const std::string decode =
      chosen("--model palm-540b --chips 64 --batch 64 --context 2048 --weights int8 --phase decode",
             "decode");
  EXPECT_TRUE(decode.starts_with("ws2d:")) << decode;
  EXPECT_EQ(decode.find("heads"), std::string::npos) << decode;
  const std::string prefill =
      chosen("--model palm-540b --chips 64 --batch 1 --phase prefill", "prefill");
  EXPECT_TRUE(prefill.starts_with("ws2d:heads")) << prefill;
  const std::string gathered = chosen(
      "--model palm-540b --phase prefill --batch 512 --torus 4x4x4 --volumes paper --weights bf16",
      "prefill");
  EXPECT_TRUE(gathered.starts_with("wg-xyz")) << gathered;
}

TEST_F(PlanVerb, SaysByHowMuchAllVolumesDisagree) {
  const Outcome o =
      run("plan --phase prefill --batch 512 --torus 4x4x4 --volumes paper --weights bf16");
  EXPECT_NE(o.out.find("wg-xy:natural is ahead: 2.88e+09 against 4.47e+09 elements."),
            std::string::npos)
      << o.out << o.err;
}

TEST_F(PlanVerb, PrintsWhatTheChoiceCosts) {
  const Outcome o = run("plan --chips 64 --batch 64 --weights int8 --phase both --skipped");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* part :
       {"Prefill by ", "Decode step by ", "at full speed: compute ", "chip-seconds a token",
        "memory ", "a chip sends over ", "Why the next lost", "Proof on a small model", "Left out"})
    EXPECT_NE(o.out.find(part), std::string::npos) << part << "\n" << o.out;
  expect_80_columns(o.out, "shardproof verify");
}

/// On unequal axes, 3 and 1; for each phase and kind of model.
TEST_F(PlanVerb, ItsProofIsOne) {
  for (const char* arguments :
       {"--torus 4x2x3 --batch 24 --phase decode --model palm-tiny",
        "--torus 4x2x3 --batch 24 --phase prefill --model palm-tiny,K=6 --context 48",
        "--torus 2x1x3 --batch 6 --model gptj --context 48 --gen 24",
        "--torus 1x1x1 --batch 3 --model llama --context 48",
        "--torus 2x2x2 --batch 1 --model falcon --context 48 --weights int8"}) {
    const nlohmann::json found = plan(arguments);
    ASSERT_FALSE(found.is_null());
    const std::string command = found["proof"];
    ASSERT_TRUE(command.starts_with("shardproof ")) << command;
    const Outcome proof = run(command.substr(std::string("shardproof ").size()));
    EXPECT_EQ(proof.code, 0) << command << "\n" << proof.out << proof.err;
  }
}

/// Of shares of the channels that rotate, whatever small number of channels they allow.
TEST_F(PlanVerb, TheProofOfEveryPresetIsOne) {
  int proven = 0;
  const nlohmann::json listed = nlohmann::json::parse(run("list models --json").out);
  for (const nlohmann::json& preset : listed["presets"]) {
    const std::string name = preset["preset"];
    const nlohmann::json found =
        plan("--torus 2x1x1 --batch 2 --context 64 --weights int8 --top 1 --model " + name +
             ",layers=1");
    ASSERT_FALSE(found.is_null()) << name;
    const std::string command = found["proof"];
    const Outcome proof = run(command.substr(std::string("shardproof ").size()));
    EXPECT_EQ(proof.code, 0) << command << "\n" << proof.out << proof.err;
    ++proven;
  }
  EXPECT_GT(proven, 0);
}

TEST_F(PlanVerb, ChoosesAmongTheUsersTables) {
  const std::string file = write("my.layouts",
                                 "layouts mine\nin : BLE_xzy -> BLE_x\nweights : E_x F_zy H_zy\n"
                                 "hidden : BLF_zyx\nattend : B_zyxLHQ\n");
  const nlohmann::json found = plan(
      "--torus 2x2x3 --batch 12 --phase decode --model palm-tiny --only mine,ws2d:batch "
      "--layouts " +
      file);
  ASSERT_EQ(found["choices"].size(), 4U);
  std::set<std::string> names;
  for (const auto& choice : found["choices"]) names.insert(choice["decode"]["strategy"]);
  EXPECT_EQ(names, (std::set<std::string>{"mine", "ws2d:batch"}));
}

/// The paper's Table 1.
TEST_F(PlanVerb, PrintsTheLongestContexts) {
  const nlohmann::json found = plan(
      "--capacity --cache-share 0.3 --chips 64 --batch 128,512 --weights int8 --only "
      "ws2d:batch,ws2d:heads");
  std::map<std::string, double> of;
  for (const auto& one : found["capacity"])
    of[one["strategy"].get<std::string>() + " " + std::to_string(one["batch"].get<int>())] =
        one["context"];
  EXPECT_NEAR(of["ws2d:batch 128"], 43000, 0.02 * 43000);
  EXPECT_NEAR(of["ws2d:batch 512"], 10700, 0.02 * 10700);
  EXPECT_NEAR(of["ws2d:heads 128"], 660, 0.02 * 660);
  EXPECT_NEAR(of["ws2d:heads 512"], 165, 0.02 * 165);
  const Outcome o = run("plan --capacity --chips 8 --batch 8 --model palm-8b --top 2");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(std::count(o.out.begin(), o.out.end(), '\n'), 6) << o.out;
}

TEST_F(PlanVerb, WritesCostAgainstLatency) {
  const Outcome o = run("plan --chips 8,16 --batch 1,16 --model palm-8b --pareto --csv a.csv");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(files(), 1U);
  std::istringstream csv(slurp(path("a.csv")));
  std::string line;
  std::getline(csv, line);
  EXPECT_TRUE(line.starts_with("phase,weights,chips,torus,strategy,batch,")) << line;
  std::set<std::string> keys;
  int rows = 0, best = 0;
  const auto columns = std::count(line.begin(), line.end(), ',');
  while (std::getline(csv, line)) {
    ++rows;
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), columns) << line;
    best += line.ends_with(",1") ? 1 : 0;
    keys.insert(line.substr(0, line.find(',', line.find(',') + 1)));
  }
  EXPECT_EQ(rows, 2 * 2 * 2 * 2) << "phases, weight types, chips and batches";
  EXPECT_GE(best, 4);
  EXPECT_EQ(keys,
            (std::set<std::string>{"decode,bf16", "decode,int8", "prefill,bf16", "prefill,int8"}));
  const nlohmann::json one = plan("--chips 8 --batch 1 --model palm-8b --pareto --phase decode");
  EXPECT_EQ(one["points"].size(), 2U);
  EXPECT_TRUE(fs::exists(path("plan.csv")));
}

TEST_F(PlanVerb, RefusesAndNamesTheNearest) {
  expect_refused("plan --chips 64 --batch 64 --latency 50", "quantity_c1");
  expect_refused("plan --chips 64 --batch 64 --latency 50m", "quantity_c1");
  expect_refused("plan --chips 64 --batch 64 --phase decode --latency 1ms",
                 "plan_c2: nothing has a latency of at most 1 ms; the least is ");
  expect_refused("plan --chips 8 --batch 64 --phase decode", "chips hold it");
  expect_refused("plan --chips 12", "plan_c4: no slice of tpu-v4 has 12 chips; 8 and 16 have");
  expect_refused("plan --chips -4", "flag_c10: --chips '-4'");
  expect_refused("plan --chips 64 --batch 0", "flag_c10: --batch '0'");
  expect_refused("plan --chips 64 --batch 8-", "flag_c10: --batch '8-'");
  expect_refused("plan --chips 64 --batch 9-8", "flag_c10");
  expect_refused("plan --chips 9999", "1 to 4096, as 64, 1,8,64 or, from one to another, 8-256");
  // The examples are legal where few chips are.
  expect_refused("plan --chip a100-80g --chips 99",
                 "1 to 16, as 16, 1,16 or, from one to another, 1-16");
  expect_refused("plan --chip orin-nano-8g --chips 8", "flag_c10: --chips '8': legal is 1 alone");
  expect_refused("plan", "flag_c7: plan needs --chips or --torus");
  expect_refused("plan --chips 64 --torus 4x4x4", "flag_c6");
  expect_refused("plan --chips 64 --phase decod",
                 "flag_c11: --phase 'decod', did you mean decode?");
  expect_refused("plan --chips 64 --context 0", "flag_c3");
  expect_refused("plan --chips 64 --context 10 --prompt 10 --gen 4", "plan_c5: a context of 10");
  expect_refused("plan --chips 64 --only ws3d", "strategy_c1");
  expect_refused("plan --torus 5x1x1 --batch 1 --only ws2d:batch", "plan_c3");
  expect_refused("plan --chips 64 --chip tpu-v44", "chip_c6");
  expect_refused("plan --chips 64 --cache-share 0.3", "flag_c6: --cache-share has no effect");
  expect_refused("plan --chips 64 --csv a.csv", "flag_c6: --csv has no effect without --pareto");
  expect_refused("plan --chips 64 --capacity --pareto", "flag_c6");
  expect_refused("plan --chips 64 --capacity --cache-share 1.5", "plan_c6");
  expect_refused("plan --chips 64 --capacity --cache-share -1", "quantity_c");
  expect_refused("plan --chips 8 --capacity --weights bf16", "plan_c1");
  expect_refused("plan --torus 1x1x1 --capacity --cache-share 0.3 --batch 1 --weights bf16",
                 "plan_c1: with a context of 1: nothing fits");
  expect_refused("plan --chips 8 --batch 64 --pareto", "chips hold it");
}

/// What is named runs.
TEST_F(PlanVerb, NamesAFeasibleSliceAndBatch) {
  const std::string asked = "plan --phase decode --model palm-8b ";
  expect_refused(asked + "--batch 8 --torus 5x1x1", "feasible is --chips 4 (");
  const Outcome o = run(asked + "--only dp --batch 12 --torus 4x2x1");
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
  const auto word_behind = [&](const std::string& flag) {
    const auto begin = o.err.find(flag) + flag.size();
    return o.err.substr(begin, o.err.find(' ', begin) - begin);
  };
  ASSERT_NE(o.err.find("--chips "), std::string::npos) << o.err;
  ASSERT_NE(o.err.find("--batch "), std::string::npos) << o.err;
  EXPECT_EQ(run(asked + "--only dp --batch 12 --chips " + word_behind("--chips ")).code, 0)
      << o.err;
  EXPECT_EQ(run(asked + "--only dp --torus 4x2x1 --batch " + word_behind("--batch ")).code, 0)
      << o.err;
}

TEST_F(PlanVerb, RefusesFlagsWithoutEffect) {
  const std::string small = "plan --chips 8 --model palm-8b ";
  for (const char* flags :
       {"--capacity --minimize cost", "--capacity --phase prefill", "--capacity --phase both",
        "--capacity --context 64", "--capacity --prompt 8", "--capacity --gen 8",
        "--capacity --alone", "--capacity --volumes paper", "--capacity --latency 1s",
        "--capacity --skipped", "--pareto --minimize cost", "--pareto --top 3",
        "--pareto --skipped", "--phase decode --prompt 8", "--phase decode --alone",
        "--pareto --phase decode --alone", "--phase prefill --alone --gen 8",
        "--split --ttft 1s --tpot 1s --top 3", "--split --ttft 1s --tpot 1s --phase decode"}) {
    expect_refused(small + flags, "flag_c6: --");
  }
  expect_refused("plan --torus 2x2x2 --tori all --model palm-8b",
                 "flag_c6: --tori has no effect with --torus");
  EXPECT_EQ(files(), 0U);
}

/// Elsewhere than on the chip of the fit every report says so, and only there.
TEST_F(PlanVerb, SaysOnWhichChipsItsEstimatesAreAGuess) {
  const std::string guess = "constants fitted on tpu-v4; for tpu-v4-axes a guess";
  const std::string files = " --csv " + path("a.csv").string();
  for (const std::string& form : {std::string("--phase decode"), "--pareto" + files,
                                  std::string("--split --ttft 10s --tpot 1s --context 64")}) {
    const std::string asked = "plan --chips 8 --model palm-8b " + form;
    EXPECT_EQ(run(asked).out.find("a guess"), std::string::npos) << form;
    EXPECT_FALSE(nlohmann::json::parse(run(asked + " --json").out).contains("guess")) << form;
    const Outcome o = run(asked + " --chip tpu-v4-axes");
    EXPECT_NE(o.out.find(guess + "\n"), std::string::npos) << form << "\n" << o.out << o.err;
    const Outcome json = run(asked + " --chip tpu-v4-axes --json");
    ASSERT_EQ(json.code, 0) << json.err;
    EXPECT_EQ(nlohmann::json::parse(json.out)["guess"], guess) << form;
  }
}

/// What it says a prefill takes at least is no more than what the causal mask leaves takes.
TEST_F(PlanVerb, SaysAtLeastOfABoundAlone) {
  const std::string asked =
      "--torus 1x1x1 --model palm-8b,layers=1 --weights bf16 --phase prefill --alone --batch 1 "
      "--prompt 8000 --context 8001 --only ws2d:heads";
  const nlohmann::json found = plan(asked)["choices"][0]["prefill"];
  const double matrices = 2 * 4096.0 * 16 * 256 + 2 * 4096.0 * 256 + 3 * 4096.0 * 16384;
  const double pairs = 8000.0 * 8001 / 2;
  const double flops = 2 * matrices * 8000 + 2 * 256128.0 * 4096 + 4.0 * 16 * 256 * pairs;
  EXPECT_NEAR(found["lower"].get<double>() * 275e12 / flops, 1.0, 1e-12);
  EXPECT_EQ(found["lower"], found["compute_needed"]);
  EXPECT_GT(found["compute"].get<double>(), found["lower"].get<double>());
  const Outcome o = run("plan " + asked);
  EXPECT_NE(o.out.find(" at least "), std::string::npos) << o.out;
  EXPECT_NE(o.out.find(" needed), memory "), std::string::npos) << o.out;
  // The paper's volumes take (K-1)/K as 1, and every token's logits: no bound.
  const Outcome paper = run("plan --volumes paper " + asked);
  EXPECT_EQ(paper.out.find("at least"), std::string::npos) << paper.out;
  EXPECT_NE(paper.out.find(" overlap "), std::string::npos) << paper.out;
  const nlohmann::json by_paper = plan("--volumes paper " + asked)["choices"][0]["prefill"];
  EXPECT_FALSE(by_paper.contains("lower"));
  EXPECT_TRUE(by_paper.contains("overlapped"));
}

/// Seconds and bytes are of one count, or are labelled.
TEST_F(PlanVerb, SaysWhichVolumesItsBytesAreOf) {
  const std::string asked =
      "--phase prefill --batch 512 --torus 4x4x4 --weights bf16 --only wg-xyz:natural";
  const Outcome o = run("plan --volumes paper " + asked);
  for (const char* part :
       {"a comparison, no prediction\n", "by the paper's volumes", "the full count over "})
    EXPECT_NE(o.out.find(part), std::string::npos) << part << "\n" << o.out << o.err;
  EXPECT_EQ(o.out.find("a chip sends over"), std::string::npos) << o.out;
  expect_80_columns(o.out, "shardproof verify");
  const nlohmann::json paper = plan("--volumes paper " + asked), full = plan(asked);
  const nlohmann::json &by_paper = paper["choices"][0]["prefill"],
                       &in_full = full["choices"][0]["prefill"];
  EXPECT_FALSE(by_paper.contains("sent")) << by_paper;
  EXPECT_EQ(by_paper["sent_in_full"], in_full["sent"]);
  EXPECT_FALSE(in_full.contains("sent_by_paper"));
  EXPECT_NEAR(by_paper["sent_by_paper"].get<double>() / 270e9,
              by_paper["communication"].get<double>(), 1e-9);
  EXPECT_TRUE(paper.contains("comparison"));
  EXPECT_FALSE(full.contains("comparison"));
}

}  // namespace
