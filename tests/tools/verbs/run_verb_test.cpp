// `run`: rows of any length, and where they end.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/cli_fixture.h"

namespace {

/// On 2x2x2 every strategy takes it.
constexpr const char* kModel = "--model palm-tiny,layers=2,E=32,F=32,H=16,Q=4,V=264 --seed 3 ";
constexpr const char* kChips = "--torus 2x2x2 ";

const std::vector<std::string> kLines{"hello world", "a", "sharded", "to be or not", "ab c"};

std::string text_of(const std::vector<std::string>& lines) {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

using Rows = std::vector<std::vector<std::int32_t>>;

Rows read_rows(const std::string& text) {
  Rows rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    rows.emplace_back();
    for (std::int32_t id = 0; words >> id;) rows.back().push_back(id);
  }
  return rows;
}

class RunVerb : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    write("lines", text_of(kLines));
  }

  std::string out_of(const std::string& flags) const {
    const Outcome o = run(std::string("run ") + kModel + flags);
    EXPECT_EQ(o.code, 0) << flags << "\n" << o.err;
    return o.out;
  }
  nlohmann::json json_of(const std::string& flags) const {
    return nlohmann::json::parse(out_of(flags + " --json"));
  }

  /// Each line in a run of its own, on one chip.
  std::string alone(const std::string& flags) const {
    std::string text;
    for (const std::string& line : kLines) {
      write("line", line + "\n");
      text += out_of("--torus 1x1x1 --prompt-file line " + flags);
    }
    return text;
  }
};

/// The four tables of issue 13, as prefill and, but for the gathered weights, as decode.
const std::vector<std::string> kLayouts{"--prefill ws1d:heads ", "--prefill ws2d:batch ",
                                        "--prefill ws2d:bfirst-xyz ",
                                        "--prefill wg-xyz --decode ws2d:batch "};

TEST_F(RunVerb, ARowHasTheTokensOfARunOfItsOwn) {
  const std::string solo = alone("--gen 8");
  std::size_t chunks = 0;
  for (const std::string& line : kLines) chunks = std::max(chunks, line.size());
  for (const std::string& layout : kLayouts) {
    const std::string flags = kChips + layout + "--prompt-file lines --gen 8 ";
    EXPECT_EQ(out_of(flags), solo) << layout;
    for (std::size_t chunk = 1; chunk <= chunks; ++chunk)
      // Threads and chunks have nothing to do with one another: each once with both.
      EXPECT_EQ(
          out_of(fmt::format("{} --chunk {} --threads {}", flags, chunk, chunk % 2 == 0 ? 1 : 7)),
          solo)
          << layout << chunk;
  }
  EXPECT_EQ(out_of("--torus 2x2x2 --prompt-file lines --gen 8 --threads 1"), solo);
  EXPECT_EQ(out_of("--torus 2x2x2 --prompt-file lines --gen 8 --threads 7"), solo);
  // In another order, and some of them alone.
  const Rows rows = read_rows(solo);
  write("some", text_of({kLines[3], kLines[0], kLines[4]}));
  EXPECT_EQ(read_rows(out_of("--torus 2x2x2 --prefill ws2d:batch --prompt-file some --gen 8")),
            Rows({rows[3], rows[0], rows[4]}));
}

TEST_F(RunVerb, InF32TooARowHasTheTokensOfARunOfItsOwn) {
  // Of the same layout and torus: the order of f32 sums is theirs.
  for (const std::string& layout : kLayouts) {
    const std::string flags = kChips + layout + "--regime f32 --gen 4 ";
    std::string solo;
    for (const std::string& line : kLines) {
      write("line", line + "\n");
      solo += out_of(flags + "--prompt-file line");
    }
    for (const char* chunk : {"", "--chunk 5"})
      EXPECT_EQ(out_of(flags + "--prompt-file lines " + chunk), solo) << layout << chunk;
  }
}

TEST_F(RunVerb, TheCaseHasTheLengthsOfAllRows) {
  const auto json = json_of("--torus 2x2x2 --prefill ws2d:batch --prompt-file lines --gen 2");
  const std::string line = json["case"];
  EXPECT_NE(line.find(" batch=8 prompt=12 lengths=11,1,7,12,4,12,12,12 chunk=12 "),
            std::string::npos)
      << line;
  std::vector<std::size_t> lengths;
  for (const auto& row : json["prompt"]) lengths.push_back(row.size());
  EXPECT_EQ(lengths, (std::vector<std::size_t>{11, 1, 7, 12, 4}));
  EXPECT_EQ(json["prompt"][1], nlohmann::json({'a'}));
  EXPECT_EQ(json["generated"].size(), 5U);
  // Where lines are as long as one another nothing is said of lengths.
  write("equal", "abc\nxyz\n");
  EXPECT_EQ(json_of("--torus 2x2x2 --prompt-file equal")["case"].get<std::string>().find("lengths"),
            std::string::npos);
  write("third", "abc\nxyz\nab\n");
  EXPECT_NE(json_of("--torus 1x1x1 --prompt-file third")["case"].get<std::string>().find(
                " lengths=3,3,2 "),
            std::string::npos);
  // Of ids likewise; and a case that has lengths without a file shows each row's own.
  write("ids", "1 2 3\n4\n");
  EXPECT_EQ(json_of("--torus 1x1x1 --prompt-ids ids")["prompt"],
            nlohmann::json::parse("[[1,2,3],[4]]"));
  const auto drawn = json_of("--torus 1x1x1 --batch 3 --prompt 5 --lengths 2,5");
  const auto whole = json_of("--torus 1x1x1 --batch 3 --prompt 5");
  for (std::size_t r = 0; r < 3; ++r) {
    nlohmann::json row = whole["prompt"][r];
    row.erase(row.begin() + (r == 1 ? 5 : 2), row.end());
    EXPECT_EQ(drawn["prompt"][r], row);
  }
  EXPECT_NE(drawn["case"].get<std::string>().find(" prompt=5 lengths=2,5 "), std::string::npos);
}

TEST_F(RunVerb, ARowEndsAtItsStop) {
  const Rows whole = read_rows(out_of("--torus 2x2x2 --prompt-file lines --gen 12"));
  ASSERT_EQ(whole.size(), kLines.size());
  // Of each row its first, a middle and its last token; and one that nobody makes.
  std::vector<std::int32_t> stops{263};
  for (const auto& row : whole) {
    ASSERT_EQ(row.size(), 12U);
    stops.insert(stops.end(), {row[0], row[5], row[11]});
  }
  for (const std::int32_t stop : stops) {
    Rows want = whole;
    for (auto& row : want)
      if (const auto at = std::find(row.begin(), row.end(), stop); at != row.end())
        row.erase(at + 1, row.end());
    const std::string flags = fmt::format("--prompt-file lines --gen 12 --stop {} ", stop);
    for (const char* more : {"--torus 2x2x2", "--torus 2x2x2 --prefill ws2d:batch --chunk 5",
                             "--torus 1x1x2 --prefill wg-xyz --decode ws1d --chunk 1 --threads 7"})
      EXPECT_EQ(read_rows(out_of(flags + more)), want) << flags << more;
    const auto json = json_of(flags + kChips);
    EXPECT_EQ(json["generated"], nlohmann::json(want)) << flags;
    EXPECT_EQ(json["stop"], stop);
    EXPECT_EQ(json["prompt"].size(), kLines.size());
  }
}

TEST_F(RunVerb, ARunEndsWithItsLastRow) {
  write("line", "a\n");  // and seven rows that nobody sees
  const Rows whole = read_rows(out_of("--torus 2x2x2 --prefill ws2d:batch --prompt-file line"));
  const std::int32_t first = whole.at(0).at(0);
  const auto json = json_of(
      fmt::format("--torus 2x2x2 --prefill ws2d:batch --prompt-file line --gen 500 --stop {} "
                  "--checkpoints",
                  first));
  EXPECT_EQ(json["generated"], nlohmann::json({{first}}));
  for (const auto& [name, value] : json["checkpoints"].items())
    EXPECT_FALSE(name.find("decode.") != std::string::npos) << name;
}

/// A value of a text may have no rows, or have them in any dim.
TEST_F(RunVerb, RowsOfValuesAreThoseOfTheirBatch) {
  std::string text = run("list models --text llama,layers=1,E=24,F=48,H=6,K=2,Q=4").out;
  const std::string before = "q : BLHQ = ";
  text.insert(text.find("\n" + before) + 1,
              "twice : E = mul(g_norm, 2)\nacross : HQBL = einsum(BLE,EHQ->HQBL; norm, wq)\n");
  write("m.model", text);
  write("line", "ab\n");  // and seven rows that nobody sees
  const Outcome o =
      run("run --model m.model --torus 1x1x1 --prefill dp --prompt-file line --checkpoints --json");
  ASSERT_EQ(o.code, 0) << o.out << o.err;
  const auto json = nlohmann::json::parse(o.out);
  const auto& values = json["checkpoints"];
  EXPECT_EQ(values["prefill.c0.layer0.twice"]["shape"], nlohmann::json({24}));
  EXPECT_EQ(values["prefill.c0.layer0.twice"]["bits"].get<std::string>().size(), 24 * 8U);
  EXPECT_EQ(values["prefill.c0.layer0.across"]["shape"], nlohmann::json({6, 4, 1, 2}));
  // The same numbers as q, of which the batch is the first dim.
  const std::string across = values["prefill.c0.layer0.across"]["bits"],
                    q = values["prefill.c0.layer0.q"]["bits"];
  ASSERT_EQ(across.size(), q.size());
  for (std::size_t l = 0; l < 2; ++l)
    for (std::size_t i = 0; i < 24; ++i)
      EXPECT_EQ(across.substr((i * 2 + l) * 8, 8), q.substr((l * 24 + i) * 8, 8)) << l << " " << i;
}

TEST_F(RunVerb, ATraceOfLinesOfAnyLengthIsJudged) {
  for (const std::string& layout : kLayouts) {
    out_of(kChips + layout + "--prompt-file lines --gen 3 --chunk 5 --trace t.h5");
    const Outcome o = run("compare t.h5 --quiet");
    EXPECT_EQ(o.code, 0) << layout << o.out << o.err;
  }
}

}  // namespace
