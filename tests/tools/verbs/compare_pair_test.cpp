// `compare A B` at the command line: what it prints and exits with, and what is no pair of traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/tools/cli_fixture.h"

namespace {

class ComparePairVerb : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    trace("a.h5", "--regime f32");
    trace("b.h5", "--regime f32 --act bf16");
  }
  void trace(const std::string& file, const std::string& flags) const {
    ASSERT_EQ(run("run --torus 1x1x1 --gen 3 --batch 2 --trace " + file + " " + flags).code, 0);
  }
  /// One line, which begins with the label, and nothing else.
  void expect_refused(const std::string& arguments, const std::string& label) const {
    const Outcome outcome = run("compare " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_TRUE(outcome.err.starts_with("shardproof: " + label + ": ")) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
};

TEST_F(ComparePairVerb, PrintsTheSameInEveryForm) {
  const Outcome text = run("compare a.h5 b.h5 --runs 2");
  EXPECT_EQ(text.code, 0) << text.out << text.err;
  EXPECT_EQ(text.err, "");
  EXPECT_TRUE(
      text.out.starts_with("A: a.h5\nB: b.h5\nnumbers differ: values f32 in A, bf16 in B\nstep "))
      << text.out;
  std::istringstream lines(text.out);
  for (std::string line, before; std::getline(lines, line); before = line) {
    EXPECT_LE(line.size(), line.find("Δ") == std::string::npos ? 80U : 81U) << line;
    if (line.starts_with("  of other tokens")) {
      EXPECT_NE(line, before);
    }
  }
  const Outcome json = run("compare a.h5 b.h5 --runs 2 --json --html page.html");
  EXPECT_EQ(json.code, 0);
  const auto said = nlohmann::json::parse(json.out);
  EXPECT_EQ(said["verdict"], "explained");
  EXPECT_EQ(said["differences"].size(), 1U);
  EXPECT_EQ(said["reproduce"], "shardproof compare a.h5 b.h5 --runs 2");
  ASSERT_FALSE(said["logits"].empty());
  for (const auto& position : said["logits"]) {
    EXPECT_GT(position["log_p"], 0);
    EXPECT_GT(position["kl"], 0);
    EXPECT_GT(position["explained"], 0.1);
    EXPECT_LE(position["explained"], 1);
  }
  const std::string page = slurp(path("page.html"));
  EXPECT_NE(page.find("numbers"), std::string::npos);
  EXPECT_NE(page.find("id=\"drift\""), std::string::npos);
  EXPECT_NE(page.find(said["sentence"].get<std::string>()), std::string::npos);
  EXPECT_EQ(run("compare b.h5 a.h5 --quiet").code, 0);
}

TEST_F(ComparePairVerb, RefusesWhatIsNoPairOfTraces) {
  trace("other.h5", "--model palm-tiny,layers=1");
  ASSERT_EQ(run("verify --torus 1x1x1 --gen 3 --batch 2 --regime field --trace field.h5").code, 0);
  ASSERT_EQ(run("weights generate --out w.h5").code, 0);
  ASSERT_EQ(run("weights generate --model palm-tiny,layers=1 --out w1.h5").code, 0);
  write("text.h5", "no trace\n");
  write("empty.h5", "");
  const std::string whole = slurp(path("b.h5"));
  write("cut.h5", whole.substr(0, whole.size() / 2));
  write("short.h5", whole.substr(0, 100));
  for (const std::string flags : {"", " --same", " --model none", " --model none --same"}) {
    expect_refused("a.h5 b.h5 a.h5" + flags, "flag_c5");
    for (const char* file : {"none.h5", "cut.h5", "short.h5", "text.h5", "empty.h5"}) {
      expect_refused(std::string("a.h5 ") + file + flags, "dump_open");
      expect_refused(std::string(file) + " a.h5" + flags, "dump_open");
    }
    expect_refused("a.h5 w.h5" + flags, "dump_format");
    expect_refused("w.h5 a.h5" + flags, "dump_format");
    if (!flags.empty()) expect_refused("a.h5" + flags, "flag_c7");
    if (flags.find("none") != flags.npos) continue;
    expect_refused("a.h5 other.h5" + flags, "compare_pair");
    expect_refused("a.h5 field.h5" + flags, "compare_pair");
    expect_refused("a.h5 b.h5 --weights-of-b w1.h5" + flags, "weights_model");
    expect_refused("a.h5 b.h5 --weights none.h5" + flags, "weights_open");
  }
  expect_refused("a.h5 b.h5 --model palm-tiny", "compare_model");
  // What is said of a model is not passed over in silence without one.
  for (const char* flag : {"--case batch=2", "--case-of-b batch=2", "--weights w.h5",
                           "--weights-of-b w.h5", "--given q", "--runs 3"})
    expect_refused(std::string("a.h5 b.h5 --model none ") + flag, "compare_model");
  expect_refused("a.h5 b.h5 --golden a.h5", "flag_c6");
  expect_refused("a.h5 b.h5 --html b.h5", "output_c2");
  expect_refused("a.h5 b.h5 --html none/page.html", "file_write");
}

/// Rows that go on from shared prefixes, and the same rows whole: a cache hit and a miss, rows in
/// another order, with a model and without.
TEST_F(ComparePairVerb, HoldsAHitOfASharedPrefixAgainstAMiss) {
  write("prefix.txt", "3 7\n1 4\n");
  write("rest.txt", "1 9 4 2\n2 5 0 6\n4 7 3 5\n6 2 8 1\n");
  write("whole.txt", "3 7 1 9 4 2\n3 7 2 5 0 6\n1 4 4 7 3 5\n1 4 6 2 8 1\n");
  const std::string common = "run --torus 1x1x1 --gen 3 --prompt-ids ";
  ASSERT_EQ(run(common + "rest.txt --prefix-file prefix.txt --trace hit.h5").code, 0);
  ASSERT_EQ(run(common + "whole.txt --trace miss.h5").code, 0);
  ASSERT_EQ(run(common + "whole.txt --rows 2,0,3,1 --trace order.h5").code, 0);
  for (const char* flags : {" --same", " --same --model none"})
    for (const char* files : {"hit.h5 miss.h5", "miss.h5 hit.h5", "order.h5 hit.h5"}) {
      const Outcome outcome = run(std::string("compare --quiet ") + files + flags);
      EXPECT_EQ(outcome.code, 0) << files << flags << "\n" << outcome.out << outcome.err;
    }
}

/// Of the field regime the words of numbers are compared, chip by chip.
TEST_F(ComparePairVerb, ComparesWordsOfTheFieldWithoutAModel) {
  for (const auto& [file, torus] : {std::pair("f.h5", "2x1x1"), std::pair("g.h5", "1x2x1")})
    ASSERT_EQ(run(std::string("verify --gen 2 --batch 2 --regime field --torus ") + torus +
                  " --trace " + file)
                  .code,
              0);
  const Outcome same = run("compare f.h5 f.h5 --model none --json");
  EXPECT_EQ(same.code, 0) << same.err;
  const auto of_same = nlohmann::json::parse(same.out);
  for (const auto& value : of_same["values"]) EXPECT_EQ(value["verdict"], "the same bits") << value;
  EXPECT_EQ(run("compare f.h5 f.h5 --model none --same").code, 0);
  const Outcome other = run("compare f.h5 g.h5 --model none --json");
  EXPECT_EQ(other.code, 1) << other.err;
  int same_bits = 0;
  const auto of_other = nlohmann::json::parse(other.out);
  for (const auto& value : of_other["values"]) {
    if (value.contains("only")) continue;
    same_bits += value["verdict"] == "the same bits" ? 1 : 0;
    // Of partial sums on other chips no words are compared.
    EXPECT_EQ(value.value("unequal", 0), 0) << value;
  }
  EXPECT_GT(same_bits, 50);
}

}  // namespace
