// The verb explain of models that are texts: tables, drawings and programs of each kind of layers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/tools/cli_fixture.h"

namespace {

/// Gemma-2, whose layers differ in their window: 0 and 2 see the near positions, 1 sees all.
const std::string kGemma = SHARDPROOF_SOURCE "/tests/data/models/gemma-2.model,layers=3";
const std::string kFlags = " --torus 2x2x2 --model " + kGemma + ",local=101";

TEST_F(Cli, ExplainShowsEachKindOfLayersOnce) {
  const std::string text = run("explain ws2d:batch" + kFlags).out;
  const std::size_t local = text.find("\n== layers 0, 2 of 3 ==\n"),
                    global = text.find("\n== layer 1 of 3 ==\n"),
                    head = text.find("\n== head ==\n");
  ASSERT_TRUE(local < global && global < head && head < text.size()) << text;
  const auto has = [&](std::size_t from, std::size_t to, const char* what) {
    return text.substr(from, to - from).find(what) != std::string::npos;
  };
  EXPECT_TRUE(has(local, global, "map(store(dot_1) where see_near)"));
  EXPECT_FALSE(has(local, global, "where see)"));
  EXPECT_TRUE(has(global, head, "map(store(dot_2) where see)"));
  EXPECT_FALSE(has(global, head, "see_near"));
  const auto programs =
      nlohmann::json::parse(run("explain ws2d:batch --json" + kFlags).out)["programs"];
  ASSERT_EQ(programs.size(), 5U);
  EXPECT_EQ(programs[1]["program"], "layers 0, 2 of 3");
  EXPECT_EQ(programs[2]["program"], "layer 1 of 3");
  // Layers that are alike are one.
  const std::string alike =
      run("explain ws2d:batch --torus 2x2x2 --model " + kGemma + ",local=1").out;
  EXPECT_NE(alike.find("\n== layer ==\n"), std::string::npos) << alike;
}

/// Each kind of layers has its pass over prefixes, and moves its own caches.
TEST_F(Cli, ExplainShowsPrefixesByKind) {
  const auto programs = nlohmann::json::parse(
      run("explain ws2d:batch --json --prefix 4:2 --batch 8 --prompt 8" + kFlags).out)["programs"];
  std::vector<std::string> names;
  for (const auto& program : programs) names.push_back(program["program"]);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "layers 0, 2 of 3 of a pass over 2 prefixes of 4 positions",
                       "layer 1 of 3 of a pass over 2 prefixes of 4 positions",
                       "caches of the prefixes, to the rows' prefill, layers 0, 2 of 3",
                       "caches of the prefixes, to the rows' prefill, layer 1 of 3", "embedding",
                       "layers 0, 2 of 3", "layer 1 of 3", "head", "sampling"}));
  const auto has = [&](std::size_t program, const char* text) {
    return programs[program].dump().find(text) != std::string::npos;
  };
  EXPECT_TRUE(has(0, "where see_near"));
  EXPECT_FALSE(has(1, "where see_near"));
  for (const std::size_t of_rows : {5U, 6U}) EXPECT_TRUE(has(of_rows, "with_prefix("));
}

TEST_F(Cli, ExplainPrintsTheProgramOfEachKindOfLayers) {
  const Outcome o = run("explain ws2d:batch --text" + kFlags);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(
      o.out.starts_with("# Each of layers 0, 2 of 3 of ws2d:batch as a program "
                        "(docs/program.md).\n# Written for model "))
      << o.out;
  EXPECT_NE(o.out.find("\n# Each of layer 1 of 3 of ws2d:batch as a program"), std::string::npos);
  EXPECT_NE(o.out.find("torus 2x2x2: k_cache is B_zyxMKQ, v_cache is B_zyxMKQ.\n"),
            std::string::npos)
      << o.out;
  const std::regex output("\noutput out[^\n]*, k_cache, v_cache\n");
  EXPECT_EQ(std::distance(std::sregex_iterator(o.out.begin(), o.out.end(), output), {}), 2);
}

TEST_F(Cli, ExplainDrawsEachKindOfLayers) {
  const Outcome o = run("explain ws2d:batch --svg a.svg" + kFlags);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "a.svg: layers 0, 2 of 3\na.1.svg: layer 1 of 3\n");
  const std::string local = slurp(path("a.svg")), global = slurp(path("a.1.svg"));
  EXPECT_NE(local.find("where see_near"), std::string::npos);
  EXPECT_EQ(global.find("see_near"), std::string::npos);
  EXPECT_NE(global.find("; one of layer 1 of 3 of one decode step"), std::string::npos);
  // The letters mean what the text says.
  EXPECT_NE(local.find("H query heads=24, K key and value heads=6"), std::string::npos);
  EXPECT_NE(local.find(" G=4"), std::string::npos);
}

/// A text's arrows are all that its layers send, and a table printed with them is the same table.
TEST_F(Cli, ExplainShowsWhatTheArrowsOfATextSend) {
  int turns = 0;  // steps that follow another one of their arrow
  for (const char* strategy : {"ws1d:heads", "ws2d:batch", "ws2d:norm-first", "wg-xy:natural"}) {
    const std::string name = strategy;
    const auto tables =
        nlohmann::json::parse(run("explain --json " + name + " --layouts" + kFlags).out)["tables"];
    const auto programs =
        nlohmann::json::parse(run("explain --json " + name + kFlags).out)["programs"];
    ASSERT_EQ(tables.size(), 2U) << name;
    for (const std::size_t kind : {0U, 1U}) {
      double arrows = 0.0, steps = 0.0;
      std::string last = "nothing";
      for (const auto& arrow : tables[kind]["arrows"]) {
        // An arrow is all steps of a value's way: the next one begins with another value.
        const auto reads = [](const auto& step, const std::string& of) {
          return step["op"].template get<std::string>().find("(" + of + ",") != std::string::npos;
        };
        EXPECT_FALSE(reads(arrow["steps"][0], last)) << name << " " << arrow;
        last = arrow["steps"][0]["name"].get<std::string>();
        for (std::size_t i = 1; i < arrow["steps"].size(); ++i) {
          EXPECT_TRUE(reads(arrow["steps"][i], last)) << name << " " << arrow;
          last = arrow["steps"][i]["name"].get<std::string>();
          ++turns;
        }
        arrows += arrow["elements_per_chip"].get<double>();
        EXPECT_NE(arrow["written"].get<bool>(), arrow.contains("use")) << arrow;
      }
      for (const auto& step : programs[1 + kind]["steps"])
        if (step.contains("sends")) steps += step["sends"]["elements_per_chip"].get<double>();
      EXPECT_DOUBLE_EQ(arrows, steps) << name;
      EXPECT_EQ(tables[kind]["elements_per_chip"], steps) << name;
      EXPECT_EQ(tables[kind]["layouts"], tables[0]["layouts"]);
    }
    EXPECT_EQ(tables[0]["layers"], nlohmann::json({0, 2}));
    EXPECT_EQ(tables[1]["layers"], nlohmann::json({1}));
    const std::string text = run("explain " + name + " --layouts" + kFlags).out;
    EXPECT_NE(text.find("\n# All arrows of layer 1 of 3:\n"), std::string::npos) << text;
    write("mine.layouts",
          std::regex_replace(text, std::regex("\nlayouts [^ \n]*"), "\nlayouts mine"));
    const auto again =
        nlohmann::json::parse(run("explain --json --layouts mine.layouts" + kFlags).out)["tables"];
    for (const std::size_t kind : {0U, 1U})
      EXPECT_EQ(again[kind]["arrows"], tables[kind]["arrows"]) << name;
  }
  EXPECT_GT(turns, 0);
}

TEST_F(Cli, ExplainNamesTheLinesAndReadersOfATextsArrows) {
  const std::string text = run("explain ws2d:batch --layouts" + kFlags).out;
  EXPECT_TRUE(std::regex_search(
      text, std::regex("\nin : BLE_xzy -> BLE_x\n# in: BLE_xzy -> BLE_x +288\n"
                       "#     xg = all_gather\\(x, E, zy\\) +288\n# mid: BLE_xzy -> BLE_x +288\n")))
      << text;
  EXPECT_TRUE(
      std::regex_search(text, std::regex("\n# q_1 for q: BLH_zyQ partialsum-x -> BLH_zyxQ +192\n")))
      << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("\n# layers 0, 2 of 3, 11696 bytes each +2924\n")))
      << text;
  // A gathered weight is below the line of all weights.
  const std::string gathered = run("explain wg-xyz:batch --layouts --batch 8" + kFlags).out;
  EXPECT_TRUE(std::regex_search(gathered, std::regex("\nweights : [^\n]*\n# wq: E_xH_zyQ -> ")))
      << gathered;
}

}  // namespace
