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

TEST_F(Layouts, AProgramOfOnesOwnIsRunAndItsTraceJudged) {
  write("p.txt", run("explain ws2d:batch --text").out);
  const std::string rest = " --torus 2x2x3 --model palm-tiny,layers=1 --gen 3 --prompt 4";
  const Outcome shipped = run("run --prefill ws2d:batch --decode ws2d:batch --batch 12" + rest);
  EXPECT_EQ(shipped.code, 0) << shipped.err;
  EXPECT_EQ(run("run --program p.txt" + rest).out, shipped.out);
  EXPECT_EQ(run("run --program-prefill p.txt --decode ws2d:batch" + rest).out, shipped.out);
  const Outcome json = run("run --json --program p.txt --trace t.h5" + rest);
  EXPECT_NE(json.out.find("\"program\": \"p.txt\""), std::string::npos) << json.out;
  EXPECT_EQ(run("compare t.h5 --quiet").code, 0);
  // Of a table of one's own, too, whose name nobody else knows.
  std::string table = run("explain ws2d:batch --layouts").out;
  table.replace(table.find("\nlayouts ws2d:batch") + 9, 10, "mine");
  write("my.layouts", table);
  EXPECT_EQ(run("run --layouts my.layouts --trace t.h5 --batch 12" + rest).out, shipped.out);
  EXPECT_EQ(run("compare t.h5 --quiet").code, 0);
  expect_refused("run --program p.txt --prefill ws1d", "program_f4");
  expect_refused("run --program-decode p.txt", "program_f5");
  expect_refused("run --program p.txt --layouts my.layouts", "");
  expect_refused("run --program p.txt --trace p.txt", "output_c2: --trace");
}

TEST_F(Layouts, APrefillIsExplainedAsOne) {
  for (const char* name : {"sp:1d", "sp:2d", "ulysses", "context", "context-z:2d"}) {
    const Outcome o = run(std::string("explain ") + name);
    EXPECT_EQ(o.code, 0) << o.err;
    const bool six = std::string(name).ends_with(":2d");  // L is sharded over zy, or over z
    EXPECT_NE(o.out.find("\none prefill pass (L is sharded, so it cannot decode): batch 24, " +
                         std::string(six ? "6" : "24") + " positions\n"),
              std::string::npos)
        << o.out;
    EXPECT_EQ(run(std::string("explain ") + name + " --svg p.svg").code, 0);
    // Its text is a program that is a prefill.
    write("p.txt", run(std::string("explain ") + name + " --text").out);
    expect_equal("verify --program-prefill p.txt");
    expect_equal("verify --program-prefill p.txt --decode ws2d:batch");
    EXPECT_EQ(json("explain --program p.txt --batch 24")["programs"][1]["steps"],
              json(std::string("explain ") + name)["programs"][1]["steps"]);
  }
  expect_refused("explain sp:1d --prompt 25",
                 "strategy_c5: sp:1d on torus 4x2x3 shards L, the positions of a pass, 24 ways");
  EXPECT_EQ(run("explain sp:1d --prompt 48 --torus 2x2x2").code, 0);
}

TEST_F(Layouts, OfAFileAllTablesOrOne) {
  std::string two = shipped("ws2d:batch");
  std::string other = shipped("sp:1d");
  other.replace(other.find("layouts mine"), 12, "layouts other");
  write("two.layouts", two + "\n" + other);
  const auto all = json("explain --layouts two.layouts");
  EXPECT_EQ(all["file"], "two.layouts");
  ASSERT_EQ(all["tables"].size(), 2U);
  EXPECT_EQ(all["tables"][1]["strategy"], "other");
  EXPECT_EQ(all["tables"][1]["pass"], "prefill");
  // What is printed of all is a file, too.
  write("again.layouts", run("explain --layouts two.layouts").out);
  EXPECT_EQ(json("explain --layouts again.layouts")["tables"], all["tables"]);
  for (const char* words :
       {"mine --layouts two.layouts", "--layouts two.layouts mine", "--layouts=two.layouts mine"}) {
    const auto one = json(std::string("explain ") + words);
    ASSERT_EQ(one["tables"].size(), 1U) << words;
    EXPECT_EQ(one["tables"][0]["strategy"], "mine") << words;
  }
  EXPECT_TRUE(run("explain mine --layouts two.layouts --text")
                  .out.starts_with("# One layer of "
                                   "mine"));
  EXPECT_EQ(run("explain --layouts ws2d:batch").out, run("explain ws2d:batch --layouts").out);
  expect_refused("explain --layouts two.layouts --text", "layouts_f4: two.layouts holds 2 tables");
  expect_refused("explain mime --layouts two.layouts", "did you mean mine?");
  expect_refused("explain ws2d --layouts two.layouts", "layouts_f4");
  expect_refused("explain --layouts", "explain_c1");
  expect_refused("explain --layouts none.layouts", "layouts_f1: none.layouts cannot be read");
  expect_refused("explain --layouts two.layouts --program p.txt", "explain_c1");
  expect_refused("explain mine --layouts two.layouts --svg two.layouts", "output_c2");
}

TEST_F(Layouts, PhasesAreNamedOrTheOnlyTable) {
  table(kLines);
  const auto of = [&](const std::string& flags) {
    return std::string(json("verify --layouts " + flags)["cases"][0]["case"]);
  };
  EXPECT_NE(of("t.layouts").find("prefill=t decode=t block"), std::string::npos);
  EXPECT_NE(of("t.layouts").find("torus=4x2x3 model=palm-tiny,embed_scale=0.75 "),
            std::string::npos);
  EXPECT_NE(of("t.layouts").find("prompt=4 chunk=4 gen=3"), std::string::npos);
  EXPECT_NE(of("t.layouts --decode ws2d:batch").find("prefill=t decode=ws2d:batch"),
            std::string::npos);
  EXPECT_NE(of("t.layouts --prefill sp:1d").find("prefill=sp:1d decode=t"), std::string::npos);
  EXPECT_NE(of("t.layouts --prefill sp:1d").find("prompt=24 chunk=24"), std::string::npos);
  EXPECT_NE(of("t.layouts --case 'decode=ws1d torus=2x2x2'").find("prefill=t decode=ws1d:heads"),
            std::string::npos);
  expect_refused("verify --layouts t.layouts --prefill ws1d --decode ws2d",
                 "layouts_f4: no table of t.layouts is used: it holds t;");
  write("two.layouts", slurp(path("t.layouts")) +
                           "layouts u\nin : B_zyxLE\nweights : E F H\n"
                           "attend : B_zyxLHQ\n");
  expect_refused("verify --layouts two.layouts",
                 "layouts_f4: two.layouts holds 2 tables: name one "
                 "by --prefill (t, u)");
  expect_refused("verify --layouts two.layouts --decode u", "by --prefill (t, u)");
  expect_refused("verify --layouts two.layouts --prefill v", "strategy_c1: unknown strategy 'v'");
  EXPECT_NE(of("two.layouts --prefill u").find("prefill=u decode=u"), std::string::npos);
  EXPECT_NE(of("two.layouts --case 'prefill=u decode=t'").find("prefill=u decode=t"),
            std::string::npos);
  expect_refused("verify --layouts two.layouts --cases 3", "verify_c3");
  // The ids that other layouts give.
  const std::string rest = " --torus 2x2x2 --batch 24 --gen 4 --seed 3";
  EXPECT_EQ(run("run --layouts two.layouts --prefill u --decode t" + rest).out,
            run("run --prefill ws1d" + rest).out);
  expect_refused("run --layouts two.layouts", "layouts_f4");
}

TEST_F(Layouts, WhatShardsLNeedsAnotherDecode) {
  write("mine.layouts", shipped("sp:1d"));
  for (const char* legal : {"ws2d:batch", "fsdp", "wg-xyz:batch", "mixed:1d-2d"})
    expect_refused("verify --layouts mine.layouts", legal);
  expect_refused("verify --layouts mine.layouts",
                 "strategy_c2: mine.layouts line 5: mine shards L");
  expect_refused("verify --prefill sp:1d", "strategy_c2: sp:1d shards L");
  expect_equal("verify --layouts mine.layouts --gen 1");
  expect_equal("verify --layouts mine.layouts --decode ws1d");
  expect_refused("verify --layouts mine.layouts --gen 1 --prompt 30",
                 "strategy_c5: mine.layouts line 5: mine on torus 4x2x3");
  expect_refused("verify --layouts mine.layouts --gen 1 --prompt 48 --chunk 30", "chunk=30");
}

TEST_F(Layouts, SequenceParallelPrefillAndBatchDecode) {
  table({"in : BL_zyxE", "norm : BL_zyxE -> BLE", "weights : F_zyx H_zyx", "attend : BLH_zyxQ"});
  expect_equal(
      "verify --layouts t.layouts --decode ws2d:batch --torus 4x2x3 --batch 24 --prompt "
      "24");
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

TEST_F(Layouts, LongNamesAreToldInFull) {
  const std::string name = "a-table-of-a-long-name:with-batch-";
  write("long.layouts", "layouts " + name +
                            "1\nin : B_zyxLE\nweights : E F H\nattend : B_zyxLHQ\n" + "layouts " +
                            name +
                            "2\nin : B_zyxLE\nweights : E F H\n"
                            "attend : B_zyxLHQ\n");
  const Outcome o = run("verify --layouts long.layouts --prefill " + name + "1 --decode " + name +
                        "2 --torus 2x2x2");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("\n     prefill=" + name + "1\n     decode=" + name + "2\n"),
            std::string::npos)
      << o.out;
  EXPECT_NE(o.out.find("...name:with-batch-1 ...name:with-batch-2 "), std::string::npos) << o.out;
}

TEST_F(Layouts, ProgramsOfOnePhase) {
  write("p.txt", run("explain sp:1d --text").out);
  write("d.txt", run("explain ws2d:batch --text").out);
  Outcome o = run("verify --program-prefill p.txt");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(std::regex_search(o.out, std::regex("\n   1 4x2x3  p.txt +- +1 24   1 "))) << o.out;
  EXPECT_NE(o.out.find("\nnote: gen=1 has no decode step"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("\nnote: the prompt is one chunk"), std::string::npos) << o.out;
  o = run("verify --program-prefill p.txt --prompt 48 --chunk 24 --decode ws1d");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out.find("note"), std::string::npos) << o.out;
  o = run("verify --program-prefill p.txt --program-decode d.txt --trace t.h5");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(std::regex_search(o.out, std::regex("  p.txt +d.txt +24 24   3 "))) << o.out;
  expect_equal("verify --program-decode d.txt --prefill sp:1d");
  table(kLines);
  expect_equal("verify --program-decode d.txt --layouts t.layouts");
  expect_equal("verify --program-prefill p.txt --layouts t.layouts");
  // A decode is proved by decode steps only, whatever the prefill's chunks.
  for (const char* flags : {"--gen 1", "--gen 1 --chunk 2"}) {
    o = run(std::string("verify --program-decode d.txt --prefill ws2d ") + flags);
    EXPECT_EQ(o.code, 1) << o.out;
    EXPECT_NE(o.out.find("not judged as decode: no pass runs it (gen=1)"), std::string::npos)
        << o.out;
  }
  EXPECT_EQ(run("verify --program d.txt --gen 1 --chunk 2").code, 0);
  expect_refused("verify --program-prefill p.txt --gen 3",
                 "program_f5: gen=3 has decode steps, and --program-prefill p.txt is the prefill "
                 "alone: add --decode NAME or --program-decode FILE");
  for (const char* flags : {"", " --gen 1", " --case torus=4x2x3"})
    expect_refused(std::string("verify --program-decode d.txt") + flags,
                   "program_f5: --program-decode d.txt needs a prefill before it: add --prefill");
  for (const char* phase : {"prefill", "decode"}) {
    const std::string flag = std::string("verify --program-") + phase + " d.txt ";
    expect_refused(flag + "--" + phase + " ws2d", "program_f4");
    expect_refused(flag + "--case '" + phase + "=ws2d'", "program_f4");
  }
  expect_refused("verify --program p.txt", "program_f6: p.txt shards L");
  expect_refused("verify --program-decode p.txt --prefill ws2d", "program_f6: p.txt shards L");
  for (const char* lengths : {"--prompt 5", "--prompt 25", "--prompt 48 --chunk 20"})
    expect_refused(std::string("verify --program-prefill p.txt ") + lengths,
                   "local_c1: p.txt line 6: x: L=");
  expect_refused("verify --program-prefill p.txt --program-decode d.txt --layouts t.layouts",
                 "layouts_f4: both phases are programs");
  for (const char* flag : {"--program-prefill", "--program-decode"}) {
    expect_refused(std::string("verify ") + flag + " none.txt --trace a.h5", "none.txt");
    expect_refused(std::string("verify --trace d.txt ") + flag + " d.txt", "output_c2");
  }
}

}  // namespace
