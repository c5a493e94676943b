// Prefixes that rows share, as a user asks for them: of a file, whose lines rows go on from, and of
// a case.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/cli_fixture.h"

namespace {

/// On 2x2x2 every strategy takes it.
constexpr const char* kPrefixModel =
    "--model palm-tiny,layers=2,E=32,F=32,H=16,Q=4,V=264 --seed 3 ";
constexpr const char* kPrefixChips = "--torus 2x2x2 ";

const std::vector<std::string> kPrefixLayouts{"--prefill ws1d:heads ", "--prefill ws2d:batch ",
                                              "--prefill ws2d:bfirst-xyz ",
                                              "--prefill wg-xyz --decode ws2d:batch "};

const std::vector<std::string> kPrefixLines{"hello world", "a", "sharded", "to be or not", "ab c"};
/// What lines go on from, and which of the two each line does.
const std::vector<std::string> kPrefixes{"to be ", "not be"};
const std::vector<std::size_t> kPrefixOf{0, 0, 0, 1, 1};

std::string prefix_text_of(const std::vector<std::string>& lines) {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

class Prefixes : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    std::vector<std::string> whole;
    for (std::size_t i = 0; i < kPrefixLines.size(); ++i)
      whole.push_back(kPrefixes[kPrefixOf[i]] + kPrefixLines[i]);
    write("lines", prefix_text_of(kPrefixLines));
    write("prefixes", prefix_text_of(kPrefixes));
    write("whole", prefix_text_of(whole));  // each line behind its prefix
  }

  std::string out_of(const std::string& flags) const {
    const Outcome o = run(std::string("run ") + kPrefixModel + flags);
    EXPECT_EQ(o.code, 0) << flags << "\n" << o.err;
    return o.out;
  }
  nlohmann::json json_of(const std::string& flags) const {
    return nlohmann::json::parse(out_of(flags + " --json"));
  }
  /// What a run prints, line by line.
  std::vector<std::string> rows_of(const std::string& flags) const {
    std::vector<std::string> rows;
    std::istringstream lines(out_of(flags));
    for (std::string line; std::getline(lines, line);) rows.push_back(line);
    return rows;
  }
};

TEST_F(Prefixes, ALineHasTheTokensOfItsPrefixAndItself) {
  const std::string solo = out_of("--torus 1x1x1 --prompt-file whole --gen 6");
  for (const std::string& layout : kPrefixLayouts)
    for (const char* chunk : {"", "--chunk 4", "--chunk 1 --threads 7"})
      EXPECT_EQ(out_of(kPrefixChips + layout +
                       "--prompt-file lines --prefix-file prefixes --gen 6 " + chunk),
                solo)
          << layout << chunk;
  // Of ids likewise.
  write("own", "7 8\n9\n250 3 5\n");
  write("shared", "1 2\n3 4\n");
  write("both", "1 2 7 8\n1 2 9\n3 4 250 3 5\n");
  EXPECT_EQ(out_of("--torus 2x2x2 --prefill ws2d:batch --prompt-ids own --prefix-file shared"),
            out_of("--torus 1x1x1 --prompt-ids both"));
}

// The batch has rows that are not shown, and they change nobody's prefix: where a line would have
// its neighbour's, a prefix is there again.
TEST_F(Prefixes, ABatchHasAsFewPrefixesAsLeaveEachLineItsOwn) {
  const std::string flags = "--torus 1x1x1 --prompt-file lines --prefix-file prefixes --gen 4 ";
  const std::string solo = out_of("--torus 1x1x1 --prompt-file whole --gen 4");
  for (const auto& [batch, prefixes] :
       std::map<int, int>{{5, 2}, {6, 2}, {7, 3}, {8, 3}, {9, 3}, {12, 4}}) {
    const std::string with = fmt::format("{} --batch {}", flags, batch);
    EXPECT_EQ(out_of(with), solo) << batch;
    const auto json = json_of(with);
    EXPECT_NE(json["case"].get<std::string>().find(fmt::format(" prefix=6:{} ", prefixes)),
              std::string::npos)
        << json["case"];
    EXPECT_EQ(json["prefix_of"], nlohmann::json(kPrefixOf));
    EXPECT_EQ(json["prompt"][1], nlohmann::json({'t', 'o', ' ', 'b', 'e', ' ', 'a'}));
    EXPECT_EQ(json["prompt"].size(), kPrefixLines.size());
  }
}

TEST_F(Prefixes, LinesThatAreChosenKeepTheirPrefixes) {
  const std::string drawn = "--top-p 0.9 --gen 5 ";
  const std::vector<std::string> whole = rows_of("--torus 1x1x1 --prompt-file whole " + drawn);
  const std::vector<std::vector<std::size_t>> choices{{4, 0, 3}, {2}, {1, 2}, {3, 4, 0, 1}};
  for (const std::vector<std::size_t>& lines : choices) {
    const std::string flags = fmt::format("--prompt-file lines --prefix-file prefixes --rows {} {}",
                                          fmt::join(lines, ","), drawn);
    std::vector<std::string> want;
    for (const std::size_t line : lines) want.push_back(whole.at(line));
    for (const char* chips : {"--torus 1x1x1 ", "--torus 2x2x2 --prefill ws2d:batch "})
      EXPECT_EQ(rows_of(chips + flags), want) << chips << flags;
    const auto json = json_of("--torus 1x1x1 " + flags);
    std::vector<std::size_t> of;
    for (const std::size_t line : lines) of.push_back(kPrefixOf[line]);
    EXPECT_EQ(json["prefix_of"], nlohmann::json(of));
  }
  // Out of order every line has a prefix of its own.
  EXPECT_NE(json_of("--torus 1x1x1 --prompt-file lines --prefix-file prefixes --rows 4,0,3")["case"]
                .get<std::string>()
                .find(" prefix=6:3 "),
            std::string::npos);
}

TEST_F(Prefixes, ShowsCheckpointsOfThePrefixesThatLinesHave) {
  const std::string flags = "--prompt-file lines --prefix-file prefixes --gen 2 --checkpoints ";
  const auto one = json_of("--torus 1x1x1 " + flags)["checkpoints"];
  // Of three prefixes here, the last is of rows that are not shown.
  const auto batch = json_of("--torus 2x2x2 --prefill ws2d:batch " + flags)["checkpoints"];
  for (const char* name :
       {"prefix.c0.layer0.gate", "prefix.c0.layer1.gate", "decode.1.layer1.gate"}) {
    ASSERT_TRUE(one.contains(name)) << name;
    EXPECT_EQ(one[name], batch[name]) << name;
  }
  EXPECT_EQ(one["prefix.c0.layer0.gate"]["shape"][0], 2);
  EXPECT_EQ(one["prefill.c0.layer0.gate"]["shape"][0], 5);
}

TEST_F(Prefixes, ATraceOfLinesBehindPrefixesIsJudged) {
  for (const std::string& layout : kPrefixLayouts) {
    out_of(kPrefixChips + layout + "--prompt-file lines --prefix-file prefixes --gen 3 --chunk 5 " +
           "--trace t.h5");
    const Outcome o = run("compare t.h5 --quiet");
    EXPECT_EQ(o.code, 0) << layout << o.out << o.err;
  }
}

TEST_F(Prefixes, VerifyRunAndExplainTakePrefixes) {
  const std::string flags =
      " --model palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=264 --torus 2x2x3 --batch 12 --prompt 6 "
      "--prefix 4:3";
  // Rows begin with a prefix each, of those that are drawn, four rows with the same.
  const auto rows =
      nlohmann::json::parse(run("run --json --prefill ws2d:batch" + flags).out)["prompt"];
  const auto shared = [&](std::size_t r) {
    return std::vector<int>(rows[r].begin(), rows[r].begin() + 4);
  };
  for (std::size_t r = 0; r < 12; ++r) EXPECT_EQ(shared(r), shared(r / 4 * 4)) << r;
  EXPECT_NE(shared(0), shared(4));
  EXPECT_NE(shared(4), shared(8));
  EXPECT_NE(rows[0], rows[1]);
  const auto json = nlohmann::json::parse(run("explain ws2d:batch --json" + flags).out);
  EXPECT_EQ(json["programs"].size(), 6U);
  // Two slots of the rows' own and the new token's; keys are those and the prefix's four.
  std::map<std::string, nlohmann::json> shapes;
  for (const auto& step : json["programs"][3]["steps"])
    for (const auto& result : step["results"]) shapes[result["is"]] = result["local_shape"];
  EXPECT_EQ(shapes["k_cache"], nlohmann::json({1, 3, 1, 2}));
  EXPECT_EQ(shapes["score"], nlohmann::json({1, 1, 12, 7}));
}

}  // namespace
