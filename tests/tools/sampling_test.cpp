// Random sampling as a user asks for it: the same tokens whatever the layout and the rows beside
// them, and one line for what cannot be.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/cli_fixture.h"

namespace {

class Sampled : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    std::string text;
    for (const char* line : {"hello", "world", "some", "lines", "of", "any length", "o", "file."})
      text += std::string(line) + "\n";
    write("prompts.txt", text);
  }
  std::string tokens(const std::string& more) const {
    const Outcome o = run(std::string("run --model palm-tiny,layers=1,E=24,F=24,H=24,Q=2,V=264 "
                                      "--prompt-file prompts.txt --gen 5 --seed 3 ") +
                          more);
    EXPECT_EQ(o.code, 0) << more << "\n" << o.err;
    return o.out;
  }
  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream words(text);
    for (std::string line; std::getline(words, line);) all.push_back(line);
    return all;
  }
};

TEST_F(Sampled, TokensAreTheSameInEveryLayoutChunkAndOrderOfRows) {
  const std::string known = tokens("--torus 1x1x1 --top-p 0.9");
  EXPECT_NE(known, tokens("--torus 1x1x1"));
  EXPECT_EQ(known, tokens("--torus 1x1x1 --sample random --top-p 0.9 --temperature 1"));
  const std::vector<std::string> rows = lines(known);
  ASSERT_EQ(rows.size(), 8U);
  for (const char* layout : {"--prefill ws1d:heads", "--prefill ws2d:batch",
                             "--prefill ws2d:bfirst-xyz", "--prefill wg-xyz --decode ws2d:batch"}) {
    const std::string on = std::string("--torus 2x2x2 --top-p 0.9 ") + layout;
    EXPECT_EQ(tokens(on), known) << layout;
    EXPECT_EQ(tokens(on + " --threads 7"), known) << layout;
    for (const char* chunk : {"1", "2", "3", "4", "9"})
      EXPECT_EQ(tokens(on + " --chunk " + chunk), known) << layout << " " << chunk;
    EXPECT_EQ(tokens(on + " --rows 3,0,7"), rows[3] + "\n" + rows[0] + "\n" + rows[7] + "\n")
        << layout;
  }
}

TEST_F(Sampled, RowsAreNamedInTheJsonAndTheTrace) {
  const auto out =
      nlohmann::json::parse(tokens("--torus 1x2x1 --top-k 5 --rows 6,1 --json --trace t.h5"));
  EXPECT_EQ(out["rows"], nlohmann::json({6, 1}));
  EXPECT_EQ(out["generated"].size(), 2U);
  EXPECT_NE(std::string(out["case"]).find("seed=3 sample=random top_k=5"), std::string::npos);
  const Outcome judged = run("compare t.h5 --quiet");
  EXPECT_EQ(judged.code, 0) << judged.out << judged.err;
}

TEST_F(Sampled, RowsThatAreNotThereAreRefused) {
  const std::string with = "run --torus 1x1x1 --prompt-file prompts.txt --rows ";
  expect_refused(with + "3,8",
                 "run_c7: --rows 3,8: the file has no line 8, its lines are 0 to 7; the "
                 "nearest legal: 7");
  expect_refused(with + "-1", "the nearest legal: 0");
  expect_refused(with + "3,0,3", "run_c7: --rows 3,0,3: line 3 is named twice; legal: each once");
  expect_refused(with + "3,,1", "run_c7: --rows 3,,1: '' is no line number");
  expect_refused(with + "1-2", "run_c7: --rows 1-2: '1-2' is no line number");
  expect_refused(with + "0,1,2 --batch 2",
                 "run_c3: batch=2 is less than the 3 rows of --rows; the "
                 "nearest legal: batch=3");
  expect_refused("run --torus 1x1x1 --rows 0", "run_c7: --rows names lines of --prompt-file");
}

TEST_F(Sampled, ChoicesThatCannotBeAreRefused) {
  const std::string with = "run --torus 1x1x1 --prompt-file prompts.txt ";
  expect_refused(with + "--top-p 0",
                 "case_sampling: top_p=0: must be above 0 and at most 1; the "
                 "nearest legal: top_k=1");
  expect_refused(with + "--top-p 1.5", "the nearest legal: top_p=1");
  expect_refused(with + "--temperature 0", "the nearest legal: sample=greedy");
  expect_refused(with + "--top-k 0", "the nearest legal: top_k=1");
  expect_refused(with + "--top-k 265",
                 "case_sampling: top_k=265: the vocabulary has V=264; the "
                 "nearest legal: top_k=264");
  expect_refused("verify --torus 1x1x1 --top-p 0.9 --regime field",
                 "case_sampling: sample=random with regime=field");
}

TEST_F(Sampled, ExplainShowsTheSearches) {
  const Outcome o = run("explain ws2d:batch --torus 2x2x2 --top-k 5 --top-p 0.9");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* part : {"= top_k(e, zyx)", "= top_p(ek, zyx)", "stat top_p_sums 8x372",
                           "sends 2 BW (1-1/XYZ) = 5208, 20832 bytes", "= draw(ep, gm)"})
    EXPECT_NE(o.out.find(part), std::string::npos) << part << "\n" << o.out;
  EXPECT_EQ(run("explain ws2d:batch --torus 2x2x2").out.find("weigh("), std::string::npos);
}

}  // namespace
