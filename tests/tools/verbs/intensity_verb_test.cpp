// The verb intensity: the published figures on the command line, its table, its refusals.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/tools/cli_fixture.h"

namespace {

nlohmann::json row_named(const nlohmann::json& pass, const std::string& name) {
  for (const auto& row : pass["operators"])
    if (row["operator"] == name) return row;
  return {};
}

TEST_F(Cli, IntensitySaysWhatLimitsAChip) {
  const Outcome o = run("intensity --model llama-7b --context 4096 --json");
  ASSERT_EQ(o.code, 0) << o.err;
  const auto json = nlohmann::json::parse(o.out);
  EXPECT_EQ(json["chip"], "tpu-v4");
  ASSERT_EQ(json["passes"].size(), 2U);
  const auto& prefill = json["passes"][0];
  const auto& decode = json["passes"][1];
  EXPECT_EQ(prefill["tokens"], 4096);
  EXPECT_EQ(decode["tokens"], 1);
  EXPECT_EQ(row_named(prefill, "w_gate")["limit"], "compute");
  EXPECT_EQ(row_named(decode, "w_gate")["limit"], "memory");
  EXPECT_EQ(row_named(decode, "w_gate")["factor_elements"], 32.0 * 4096.0 * 11008.0);
  // A byte a weight where they are int8.
  const auto int8 =
      nlohmann::json::parse(run("intensity --model llama-7b --weights int8 --json").out);
  const auto bf16 = nlohmann::json::parse(run("intensity --model llama-7b --json").out);
  const double saved = row_named(bf16["passes"][1], "wq")["bytes"].get<double>() -
                       row_named(int8["passes"][1], "wq")["bytes"].get<double>();
  EXPECT_EQ(saved, 32.0 * 4096.0 * 4096.0);
  // The unembedding has no codes, and is bf16 beside them.
  EXPECT_EQ(row_named(int8["passes"][1], "unembedding"),
            row_named(bf16["passes"][1], "unembedding"));
  EXPECT_EQ(int8["embeddings"], "bf16");
  // What one chip takes at least is less than the products one by one: of a decode step weights and
  // caches alone, of a prefill the scores that are not masked.
  EXPECT_EQ(decode["least_seconds"].get<double>(),
            2.0 * decode["total"]["factor_elements"].get<double>() / 1200e9);
  const double masked = 32 * 4.0 * 32 * 128 * (4096.0 * 4095 / 2);
  EXPECT_NEAR(prefill["least_seconds"].get<double>() * 275e12 /
                  (prefill["total"]["flops"].get<double>() - masked),
              1.0, 1e-12);
}

TEST_F(Cli, IntensityKeepsItsColumnsApart) {
  for (const char* flags :
       {"--model palm-540b --weights int8 --batch 64",
        "--model palm-540b,layers=2,E=100000000,F=100000000 --weights int8 --batch "
        "1000000000 --context 4"}) {
    const std::string out = run(std::string("intensity ") + flags).out;
    std::istringstream lines(out);
    int rows = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.ends_with(" compute") && !line.ends_with(" memory")) continue;
      std::istringstream words(line.substr(line.starts_with("layers") ? 6 : 5));
      std::vector<std::string> of_row;
      for (std::string word; words >> word;) of_row.push_back(word);
      ASSERT_GE(of_row.size(), 5U) << line;
      // The last five: FLOPs, elements, FLOPs of each, FLOPs a byte, limit.
      for (std::size_t i = of_row.size() - 3; i < of_row.size() - 1; ++i) {
        std::size_t read = 0;
        EXPECT_GT(std::stod(of_row[i], &read), 0.0) << line;
        EXPECT_EQ(read, of_row[i].size()) << line;
      }
      ++rows;
    }
    EXPECT_GT(rows, 20) << out;
  }
}

/// The products of a preset are those of the text that is printed of it, by the text's names.
TEST_F(Cli, IntensityOfATextIsThatOfItsKeys) {
  const std::string file = write("m.model", run("list models --text llama,K=3,H=6").out);
  const Outcome text = run("intensity --json --batch 2 --context 11 --model " + file);
  ASSERT_EQ(text.code, 0) << text.err;
  auto json = nlohmann::json::parse(text.out);
  for (auto& pass : json["passes"])
    for (auto& row : pass["operators"])
      for (const auto& [from, to] : {std::pair{"raw_score", "q k^T"}, std::pair{"raw_attn", "p v"},
                                     std::pair{"unembed", "unembedding"}})
        if (row["operator"] == from) row["operator"] = to;
  const Outcome keys = run("intensity --json --batch 2 --context 11 --model llama,K=3,H=6");
  EXPECT_EQ(json["passes"], nlohmann::json::parse(keys.out)["passes"]);
  const Outcome refused = run("intensity --model " + file + ",Z=3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.err.starts_with("shardproof: model_c1: ")) << refused.err;
}

}  // namespace
