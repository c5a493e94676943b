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

}  // namespace
