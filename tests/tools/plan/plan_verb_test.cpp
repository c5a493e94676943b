// The verb `plan`: what it chooses, what it prints, and that its proof is one.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/tools/plan/plan_fixture.h"

namespace {

class PlanVerb : public PlanCli {};

TEST_F(PlanVerb, ChoosesWhatThePaperChose) {
  struct Row {
    const char *phase, *arguments, *chosen;
  };
  for (const Row& row :
       {Row{"decode", "--chips 64 --batch 64 --context 2048 --weights int8", "ws2d:"},
        Row{"prefill", "--model palm-540b --chips 64 --batch 1", "ws2d:heads"},
        Row{"prefill", "--batch 512 --torus 4x4x4 --volumes paper --weights bf16", "wg-xyz"}}) {
    const nlohmann::json found = plan(std::string(row.arguments) + " --phase " + row.phase);
    const std::string strategy = found["choices"][0][row.phase]["strategy"];
    EXPECT_TRUE(strategy.starts_with(row.chosen)) << strategy;
    EXPECT_EQ(strategy.find("heads") != std::string::npos, row.chosen == std::string("ws2d:heads"))
        << strategy;
  }
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
    expect_proven(found["proof"]);
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
    expect_proven(found["proof"]);
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

/// The paper's Table 1, all of which Capacity.IsThePapersTable1 has.
TEST_F(PlanVerb, PrintsTheLongestContexts) {
  const nlohmann::json found =
      plan("--capacity --cache-share 0.3 --chips 64 --batch 128 --weights int8 --only ws2d:batch");
  EXPECT_EQ(found["capacity"].size(), 1U);
  EXPECT_NEAR(found["capacity"][0]["context"].get<double>(), 43000, 0.02 * 43000);
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

/// A text that is printed of keys has the figures of the keys, but for the values that are live.
TEST_F(PlanVerb, OfATextIsThatOfItsKeys) {
  for (const char* keys : {"palm-tiny", "llama,K=24", "palm-tiny,H=48,block=serial,bias=all"}) {
    const std::string file = write("m.model", run(fmt::format("list models --text {}", keys)).out);
    for (const std::string flags :
         {"--torus 2x2x2 --only ws2d:batch --batch 8 --phase decode --context 64",
          "--torus 4x2x3 --only wg-xyz:batch --batch 24 --phase prefill --alone --context 32",
          "--torus 1x2x4 --only ws1d:heads --batch 3 --context 64 --gen 5 --alone"}) {
      auto text = plan(flags + " --weights bf16 --model " + file)["choices"][0];
      auto of_keys = plan(flags + " --weights bf16 --model " + keys)["choices"][0];
      for (const char* phase : {"prefill", "decode"}) {
        ASSERT_EQ(text.contains(phase), of_keys.contains(phase)) << flags;
        if (!text.contains(phase)) continue;
        EXPECT_GT(text[phase]["memory"]["live"], 0.0);
        for (auto* one : {&text, &of_keys})
          for (const char* member : {"live", "total", "weights"})
            (*one)[phase]["memory"].erase(member);
      }
      EXPECT_EQ(text, of_keys) << keys << " " << flags;
    }
  }
}

const std::string kTexts = SHARDPROOF_SOURCE "/tests/data/models/";

TEST_F(PlanVerb, OfATextIsProven) {
  for (const char* flags :
       {"gemma-2.model --chips 8 --batch 8 --phase decode --context 64",
        "gpt-2.model,H=20,V=250 --chips 8 --batch 8 --context 64",
        "llama-3.model,layers=32,E=4096,F=14336,H=32,K=8,Q=128,V=128256,P=8192 --chips 16 "
        "--batch 16 --phase decode"}) {
    for (const char* weights : {"bf16", "int8"}) {
      const nlohmann::json found =
          plan("--weights " + std::string(weights) + " --model " + kTexts + flags);
      EXPECT_EQ(found["choices"][0]["weights"], weights);
      expect_proven(found["proof"]);
    }
  }
}

/// Of a window only its slots are read, so the layers that have one are faster, in as much memory.
TEST_F(PlanVerb, OfATextCountsWhatAWindowSees) {
  const auto decode = [&](const char* local) {
    return plan(
        "--torus 2x2x2 --only ws2d:batch --batch 8 --phase decode --context 64 --gen 1 "
        "--model " +
        kTexts + "gemma-2.model,layers=3,local=" + local)["choices"][0]["decode"];
  };
  const auto none = decode("000"), two = decode("101"), all = decode("111");
  const auto bytes = [](const nlohmann::json& one) {
    return one["memory_seconds"].get<double>() * 1200e9;
  };
  // Of a layer's 64 slots of K=6, Q=8 in bf16, twice, a row for each chip, all but 4.
  EXPECT_NEAR(bytes(none) - bytes(two), 2 * 60 * 2 * 6 * 8 * 2, 1e-6);
  EXPECT_NEAR(bytes(two) - bytes(all), 60 * 2 * 6 * 8 * 2, 1e-6);
  EXPECT_EQ(none["memory"]["caches"], all["memory"]["caches"]);
}

TEST_F(PlanVerb, OfATextHasItsOtherReports) {
  const std::string model = " --model " + kTexts + "qwen3.model";
  const Outcome capacity = run("plan --chips 8 --batch 8 --capacity --only ws2d:batch" + model);
  EXPECT_EQ(capacity.code, 0) << capacity.err;
  EXPECT_NE(capacity.out.find("ws2d:batch"), std::string::npos) << capacity.out;
  EXPECT_EQ(plan("--chips 8 --batch 8 --pareto --phase decode" + model)["points"].size(), 2U);
}

TEST_F(PlanVerb, OfATextRefusesWhatItsProgramsHaveNot) {
  const std::string file = write("m.model", run("list models --text llama").out);
  for (const auto& [flags, what] : std::map<std::string, std::string>{
           {"--search", "plan --search is of a model of keys"},
           {"--volumes paper", "plan --volumes paper is of a model of keys"}})
    expect_refused("plan --chips 4 " + flags + " --model " + file,
                   "case_model: model=" + file + ": " + what);
}

/// Each line of the table is refused, and nothing is written.
TEST_F(PlanVerb, RefusesAndNamesTheNearest) {
  std::ifstream table(SHARDPROOF_SOURCE "/tests/tools/plan/refused.txt");
  int refused = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const auto bar = line.find(" | ");
    ASSERT_NE(bar, std::string::npos) << line;
    expect_refused("plan " + line.substr(0, bar), line.substr(bar + 3));
    ++refused;
  }
  EXPECT_GT(refused, 60);
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
