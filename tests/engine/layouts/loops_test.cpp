#include "engine/layouts/loops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "engine/program/count.h"
#include "engine/run/plan_types.h"
#include "tests/engine/text_rows.h"

namespace shardproof {
namespace {

Case small(const std::string& more, const std::string& heads) {
  return parse_case(
      fmt::format("torus=4x2x3 model=palm-tiny,{}layers=1,E=24,F=24,H=24,Q=24,V=24 batch=24 "
                  "prompt=2 gen=2 {}",
                  heads, more));
}

std::string layer(const std::string& text, const std::string& more, const std::string& heads) {
  const LayoutTable table = parse_layouts(text, "t.layouts").at(0);
  const Case c = small(more, heads);
  return print_program(
      partition(table, c.model, extents_of(c.model, c.batch, c.prompt), c.torus, c.numerics).layer);
}

/// The statements of a program that have a loop.
std::vector<std::string> looped(const std::string& program) {
  std::vector<std::string> all;
  std::istringstream lines(program);
  for (std::string line; std::getline(lines, line);)
    if (line.find("loop ") != std::string::npos) all.push_back(line.substr(0, line.find(" is ")));
  return all;
}

TEST(Loops, AreThoseOfTheTable) {
  for (const TextRow& row : text_rows(SHARDPROOF_SOURCE "/tests/engine/layouts", "loops.txt")) {
    const std::string heads = row[3].empty() ? "" : row[3] + ",";
    const std::string made = layer("layouts t\n" + lines_of(row[0]), row[2], heads);
    EXPECT_EQ(fmt::format("{}", fmt::join(looped(made), "\n")), lines_of(row[1])) << row.place;
  }
}

/// Without its loops a program is that of the case without: types, values, and what is sent.
TEST(Loops, ChangeNothingButTheOrder) {
  for (const char* torus : {"4x2x3", "1x5x2", "3x3x3", "2x1x4", "1x1x1"})
    for (const char* word : {"one-way", "both-full", "both-half"})
      for (const Strategy& s : all_strategies()) {
        const bool prime = std::string(torus) == "1x5x2";
        Case c = parse_case(
            fmt::format("torus={} model=palm-tiny,layers=1,E={},F={},H={},K={},Q=60,V={} "
                        "block=serial batch=1080 "
                        "prompt=1080 gen=2",
                        torus, prime ? 80 : 216, prime ? 80 : 216, prime ? 40 : 216,
                        prime ? 40 : 12, prime ? 80 : 216));
        c.prefill = s;
        c.decode = decodes(s) ? s : c.decode;
        const PartitionedLayer plain = partitioned(c, s, Phase::prefill);
        const Ledger without =
            count(plain.layer, check(plain.layer, c, c.prompt, 0), c.torus, {}, c.model);
        c.numerics.loop = parse_loop(word);
        const PartitionedLayer made = partitioned(c, s, Phase::prefill);
        const Ledger with =
            count(made.layer, check(made.layer, c, c.prompt, 0), c.torus, {}, c.model);
        EXPECT_EQ(with.moved(), without.moved()) << s.to_string();
        EXPECT_EQ(with.moved_bytes(), without.moved_bytes()) << s.to_string();
        std::string text = print_program(made.layer);
        text = std::regex_replace(text, std::regex(" loop (one-way|both-full|both-half)"), "");
        text = std::regex_replace(text, std::regex("loop "), "");
        EXPECT_EQ(text, print_program(plain.layer)) << s.to_string();
      }
}

}  // namespace
}  // namespace shardproof
