// The verb faults: what it prints, writes and refuses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/tools/cli_fixture.h"

namespace {

const std::string kFaultsCase =
    " --case \"torus=2x1x2 prefill=ws2d:heads batch=2 prompt=2 gen=2 "
    "model=palm-tiny,layers=1,E=8,F=8,H=4,Q=4,V=8,positions=8\"";

TEST_F(Cli, FaultsSaysWhatEachDetectorSays) {
  const Outcome o = run("faults --only \"lose-a-part prefill.layer.yr first\"" + kFaultsCase);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("exact      seen"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("types      -"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("first: step prefill.c0.layer0.yr"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("1 mutants: 1 killed"), std::string::npos) << o.out;
}

TEST_F(Cli, FaultsNamesTheReasonOfAnEquivalentMutant) {
  const Outcome o = run("faults --only \"sum-in-other-order prefill.layer.yr -\"" + kFaultsCase);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("equivalent: order-of-a-sum"), std::string::npos) << o.out;
}

TEST_F(Cli, FaultsOfOneCaseWritesItsTables) {
  const std::string files = " --json a.json --html a.html";
  const Outcome o = run("faults --budget 30 --seed 4" + kFaultsCase + files);
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  std::istringstream lines(o.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  const auto json = nlohmann::json::parse(slurp(path("a.json")));
  EXPECT_EQ(json["all"]["mutants"], 30);
  EXPECT_EQ(json["all"]["left"], 0);
  EXPECT_EQ(json["left"].size(), 0U);
  EXPECT_EQ(json["cases"].size(), 1U);
  EXPECT_NE(slurp(path("a.html")).find("Seen by each detector"), std::string::npos);
  // The same mutants again say the same; so do its own results without a run.
  EXPECT_EQ(run("faults --budget 30 --seed 4 --against a.json" + kFaultsCase).code, 0);
  const Outcome from = run("faults --from a.json" + kFaultsCase);
  EXPECT_EQ(from.code, 0) << from.err;
  EXPECT_NE(from.out.find("30 mutants: "), std::string::npos);
  // Another outcome than the file's is a failure.
  std::string text = slurp(path("a.json"));
  auto changed = json;
  std::string codes = changed["cases"][0]["outcomes"];
  const auto at = codes.find_first_not_of('.');
  codes[at] = codes[at] == 'A' ? 'B' : 'A';
  changed["cases"][0]["outcomes"] = codes;
  write("b.json", changed.dump());
  const Outcome other = run("faults --budget 30 --seed 4 --against b.json" + kFaultsCase);
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.out.find("differs from b.json"), std::string::npos) << other.out;
}

TEST_F(Cli, FaultsListsMutantsThatOnlyTakes) {
  const Outcome all = run("faults --all --list" + kFaultsCase);
  ASSERT_EQ(all.code, 0) << all.err;
  std::istringstream lines(all.out);
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count)
    if (count % 151 == 0) {
      const std::string mutant = line.substr(0, line.find(" in "));
      EXPECT_EQ(run("faults --only \"" + mutant + "\"" + kFaultsCase).code, 0) << mutant;
    }
  EXPECT_GT(count, 300);
}

TEST_F(Cli, FaultsTakesTablesOfYourOwn) {
  const std::string own =
      write("my.layouts",
            "layouts mine  heads on yx\nin : BLE_xzy -> BLE\nweights : F_yx H_yx\n"
            "attend : BLH_yxQ\n");
  const Outcome o =
      run("faults --budget 15 --layouts my.layouts --torus 2x2x1 --batch 4 --gen 2 --model "
          "palm-tiny,layers=1,E=8,F=8,H=4,Q=4,V=8,positions=8");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_NE(o.out.find("15 mutants: "), std::string::npos);
}

TEST_F(Cli, FaultsRefusesInOneLine) {
  write("no.json", "[]");
  for (const std::string& wrong :
       {std::string("faults"), std::string("faults --all --zoo"), std::string("faults --budget 0"),
        std::string("faults --budget x"), std::string("faults --only a"),
        "faults --only a" + kFaultsCase, "faults --only \"a b c\"" + kFaultsCase,
        "faults --only \"lose-a-part b c\"" + kFaultsCase,
        "faults --only \"lose-a-part prefill.layer.yr third\"" + kFaultsCase,
        "faults --only \"lose-a-part prefill.layer.nn first\"" + kFaultsCase,
        "faults --zoo --against no.json" + kFaultsCase, "faults --from none.json" + kFaultsCase,
        "faults --zoo --json /nowhere/at/all.json" + kFaultsCase,
        std::string("faults --zoo --case \"torus=2x2x2 prefill=none\""),
        std::string("faults --zoo --docs no.md") + kFaultsCase,
        std::string("faults --zoo --decode-torus 2x2x2"), std::string("faults --zoo --more")}) {
    const Outcome o = run(wrong);
    EXPECT_EQ(o.code, 2) << wrong << o.out;
    EXPECT_EQ(o.out, "") << wrong;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << wrong << o.err;
  }
}

}  // namespace
