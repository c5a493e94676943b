// Tables of layouts and programs of one phase, as a user meets them.
#include <nlohmann/json.hpp>
#include <regex>
#include <vector>

#include "tests/tools/layouts_fixture.h"

namespace {

std::vector<std::string> strategies() {
  // One of each kind; all of them are read back by tests/engine.
  return {"ws1d:heads", "ws2d:batch",         "ws2d:pre-y", "ws2d:few-heads-batch",
          "wg-xy",      "ws2d:norm-first-kv", "fsdp",       "sp:2d",
          "ulysses",    "context-z:2d"};
}

TEST_F(Layouts, WhatExplainPrintsIsAFileThatIsJudgedEqual) {
  for (const std::string& name : strategies()) {
    const std::string full = name == "wg-xy" ? "wg-xy:natural" : name;
    write("mine.layouts", shipped(full));
    const bool decodes = run("explain " + name).out.find("one decode step") != std::string::npos;
    expect_equal("verify --layouts mine.layouts" + std::string(decodes ? "" : " --decode ws2d"));
    // The same arrows and figures as of the strategy that it was printed from.
    auto mine = json("explain --layouts mine.layouts")["tables"][0];
    auto theirs = json("explain " + full + " --layouts")["tables"][0];
    for (const char* member : {"arrows", "elements_per_chip", "statistics_per_chip", "pass"})
      EXPECT_EQ(mine[member], theirs[member]) << name;
  }
}

TEST_F(Layouts, ArrowsAddUpToTheLayer) {
  for (const std::string& name : strategies())
    for (const std::string flags : {"", " --model palm-tiny,K=24 --act bf16",
                                    " --model palm-tiny,K=6,norm=layernorm,bias=all "
                                    "--block serial",
                                    " --paper --torus 2x2x3 --model palm-tiny,H=12"}) {
      const auto table = json("explain " + name + " --layouts" + flags)["tables"][0];
      double sum = table["statistics_per_chip"];
      for (const auto& arrow : table["arrows"]) {
        double steps = 0.0;
        for (const auto& step : arrow["steps"]) steps += step["elements_per_chip"].get<double>();
        EXPECT_DOUBLE_EQ(steps, arrow["elements_per_chip"]) << arrow;
        EXPECT_NE(arrow["written"].get<bool>(), arrow.contains("use")) << arrow;
        sum += steps;
      }
      EXPECT_DOUBLE_EQ(sum, table["elements_per_chip"]) << name << flags;
      // What explain counts without the table, step by step; what is in no arrow is a statistic.
      double elements = 0.0, statistics = 0.0;
      const auto steps = json("explain " + name + flags)["programs"][1]["steps"];
      for (const auto& step : steps)
        if (step.contains("sends")) {
          const double sent = step["sends"]["elements_per_chip"];
          elements += sent;
          if (std::string(step["results"][0]["is"]).starts_with("stat")) statistics += sent;
        }
      EXPECT_NEAR(table["elements_per_chip"], elements, 1e-6) << name << flags;
      EXPECT_NEAR(table["statistics_per_chip"], statistics, 1e-6) << name << flags;
    }
}

TEST_F(Layouts, FitEightyColumns) {
  for (const std::string& name : strategies())
    for (const char* flags : {"", " --model palm-tiny,K=24,bias=all --block serial"}) {
      std::istringstream lines(run("explain " + name + " --layouts" + flags).out);
      int count = 0;
      for (std::string line; std::getline(lines, line); ++count)
        EXPECT_LE(line.size(), 80U) << line;
      EXPECT_GT(count, 8) << name;
    }
}

TEST_F(Layouts, ShowWrittenArrowsBelowTheirLines) {
  const std::string text = run("explain ws2d:batch --layouts").out;
  EXPECT_TRUE(
      std::regex_search(text, std::regex("\nin : BLE_xzy -> BLE_x\n# in: BLE_xzy -> BLE_x +480\n"
                                         "#     xg = all_gather\\(x, E, zy\\) +480\nweights : ")))
      << text;
  EXPECT_TRUE(std::regex_search(
      text, std::regex("\n# q for attend: BLH_zyQ partialsum-x -> B_zyxLHQ +760\n")))
      << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("\n# the layer, 24080 bytes +6020\n$"))) << text;
  // A line for some uses only.
  const std::string kv = run("explain ws2d:norm-first-kv --layouts").out;
  EXPECT_NE(kv.find("\nnorm for k : BLE_xzy\n"), std::string::npos) << kv;
}

TEST_F(Layouts, AnotherOrderOfAxesIsEqualAndDearer) {
  table(kLines, "zyx.layouts", "zyx");
  table(with(2, "hidden : BLF_yzx"), "yzx.layouts", "yzx");
  const std::string flags = " --decode ws2d:batch --torus 4x2x3 --batch 24 --prompt 24";
  expect_equal("verify --layouts zyx.layouts" + flags);
  expect_equal("verify --layouts yzx.layouts" + flags);
  const auto sent = [&](const std::string& file) {
    const auto arrows = json("explain --layouts " + file)["tables"][0]["arrows"];
    for (const auto& arrow : arrows)
      if (arrow["value"] == "gate") return arrow["elements_per_chip"].get<double>();
    return 0.0;
  };
  EXPECT_EQ(sent("zyx.layouts"), 1152.0);
  EXPECT_GT(sent("yzx.layouts"), 1152.0);
  EXPECT_NE(run("explain --layouts yzx.layouts").out.find("permute_axes(hr, F, zyx->yzx)"),
            std::string::npos);
}

TEST_F(Layouts, ReproduceRunsTheSameAgain) {
  // A model whose stream overflows: what is refused is printed with its command.
  table(kLines, "my t.layouts");
  const std::string flags = " --decode ws2d:batch --model palm-tiny,embed_scale=1e25";
  const auto first =
      nlohmann::json::parse(run("verify --layouts 'my t.layouts'" + flags + " --json").out);
  const std::string command = first["reproduce"];
  EXPECT_TRUE(
      command.starts_with("shardproof verify --layouts 'my t.layouts' --case \"torus=4x2x3"))
      << command;
  EXPECT_EQ(first["cases"][0]["layouts"], "my t.layouts");
  const auto again = nlohmann::json::parse(run(command.substr(11) + " --json").out);
  for (const char* member : {"case", "verdict", "reason"})
    EXPECT_EQ(again["cases"][0][member], first["cases"][0][member]);
  // Likewise of programs of one phase.
  std::string text = run("explain sp:1d --text").out;
  text.replace(text.find("swiglu(h, u)"), 12, "swiglu(u, h)");
  write("p.txt", text);
  write("d.txt", run("explain ws2d:batch --text").out);
  for (const std::string rest :
       {"", " --decode ws1d", " --program-decode d.txt", " --layouts 'my t.layouts'"}) {
    const Outcome o = run("verify --program-prefill p.txt" + rest);
    EXPECT_EQ(o.code, 1) << o.out << o.err;
    EXPECT_NE(o.out.find("p.txt line 33: step prefill.c0.layer0.a = swiglu(u, h)"),
              std::string::npos)
        << o.out;
    const auto at = o.out.find("reproduce: shardproof ") + 22;
    const Outcome second = run(o.out.substr(at, o.out.find('\n', at) - at));
    const std::regex seconds(" in [0-9.]+ s");
    EXPECT_EQ(std::regex_replace(second.out, seconds, ""), std::regex_replace(o.out, seconds, ""));
  }
}

}  // namespace
