// Which values one of two traces has alone, in the text of `compare A B`.
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/report/judged_dump.h"
#include "tools/report/pair_text.h"

namespace shardproof::tools {
namespace {

/// The text of two traces, of which one lacks the first values of layer 1 of the last step.
std::string text_of(std::size_t lacking, bool of_b) {
  const JudgedDump dumps;
  const dump::Dump whole = dumps.dump(1);
  dump::Dump part = dumps.dump(2);
  const char* const names[] = {"norm", "q", "k", "v", "score"};
  for (std::size_t i = 0; i < lacking; ++i) {
    const std::string name = std::string("decode.1.layer1.") + names[i];
    part.values.erase(name);
    std::erase(part.order, name);
  }
  PairComparisonRequest request;
  request.a.file = "a.npz", request.b.file = "b.npz";
  request.plain = true;
  return pair_text(of_b ? compare_pair(part, whole, request) : compare_pair(whole, part, request),
                   true);
}

TEST(PairTitles, AreTheFirstThreeThatOneHasAlone) {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  for (const bool of_b : {false, true}) {
    const std::string only = of_b ? "only in B: " : "only in A: ", layer = "decode.1.layer1.";
    EXPECT_FALSE(has(text_of(0, of_b), "only in"));
    EXPECT_TRUE(has(text_of(1, of_b), "\n" + only + layer + "norm\n"));
    EXPECT_TRUE(has(text_of(3, of_b), "\n" + only + layer + "norm, " + layer + "q, " + layer));
    EXPECT_FALSE(has(text_of(3, of_b), " more"));
    EXPECT_TRUE(has(text_of(5, of_b), " and 2 more"));
    EXPECT_FALSE(has(text_of(5, of_b), of_b ? "only in A" : "only in B"));
  }
}

}  // namespace
}  // namespace shardproof::tools
