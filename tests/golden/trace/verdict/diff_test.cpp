// Two traces of one case, bit for bit.
#include "golden/trace/verdict/diff.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "golden/trace/read/dump.h"
#include "tests/golden/faults.h"
#include "tests/golden/trace/write/traced_run.h"
#include "tests/weights/folder.h"

namespace shardproof {
namespace {

TEST(TraceDiff, OfEqualRunsIsNone) {
  const Folder folder;
  const Case c = parse_case(kCase);
  trace_case(c, folder / "a.h5");
  trace_case(c, folder / "b.h5");
  const TraceDiff found =
      diff_traces(dump::read_dump(folder / "a.h5"), dump::read_dump(folder / "b.h5"));
  EXPECT_GT(found.equal, 200);
  EXPECT_TRUE(found.different.empty());
  EXPECT_FALSE(found.first);
  EXPECT_EQ(found.exit_code(), 0);
}

TEST(TraceDiff, NamesTheStepWhereARunGoesWrong) {
  const Folder folder;
  const Case c = parse_case(kCase);
  const Traced right = trace_case(c, folder / "right.h5");
  for (const char* step : {"hr", "ag"}) {  // of the second the copies differ
    const Traced wrong = trace_case(c, folder / "wrong.h5", false, lost_transfer(step, "decode"),
                                    Findings::Until::all);
    const auto& judged = *wrong.judgement.difference();
    const dump::Dump a = dump::read_dump(folder / "right.h5"),
                     b = dump::read_dump(folder / "wrong.h5");
    for (const bool turned : {false, true}) {
      const TraceDiff found = turned ? diff_traces(b, a) : diff_traces(a, b);
      EXPECT_EQ(found.exit_code(), 1);
      ASSERT_TRUE(found.first);
      EXPECT_EQ(found.first->name, judged.step);
      EXPECT_EQ(found.different.front(), judged.step);
      EXPECT_TRUE(found.first->why.empty()) << found.first->why;
      EXPECT_NE(found.first->a, found.first->b);
      EXPECT_EQ(found.first->chip.has_value(), std::string(step) == "ag");
    }
  }
}

TEST(TraceDiff, CountsWhatIsMissing) {
  const Folder folder;
  const Case c = parse_case(kCase);
  trace_case(c, folder / "a.h5");
  const dump::Dump a = dump::read_dump(folder / "a.h5");
  dump::Dump b = a;
  b.values.erase("decode.1.layer0.out");
  std::erase(b.order, "decode.1.layer0.out");
  EXPECT_EQ(diff_traces(a, b).only_a, std::vector<std::string>{"decode.1.layer0.out"});
  EXPECT_EQ(diff_traces(b, a).only_b, std::vector<std::string>{"decode.1.layer0.out"});
  EXPECT_EQ(diff_traces(a, b).exit_code(), 1);
  // One bit of one chip's partial sums, one of a whole value, and a shard that is gone.
  auto& shards = b.values.find("decode.1.layer1.h")->second.chips;
  shards.rbegin()->second.bytes[9] ^= std::byte{1};
  TraceDiff found = diff_traces(a, b);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->name, "decode.1.layer1.h");
  EXPECT_EQ(found.first->chip, 5);
  EXPECT_EQ(found.first->index, (Shape{0, 0, 1}));
  b.values.find("decode.1.layer0.hr")->second.whole.bytes[8] ^= std::byte{1};
  found = diff_traces(a, b);
  EXPECT_EQ(found.first->name, "decode.1.layer0.hr");
  EXPECT_FALSE(found.first->chip);
  EXPECT_EQ(found.first->index, (Shape{0, 0, 2}));
  EXPECT_EQ(found.different.size(), 2U);
  shards.erase(shards.begin());
  b.values.find("decode.1.layer0.hr")->second.whole.bytes[8] ^= std::byte{1};
  EXPECT_EQ(diff_traces(a, b).first->why, "only in the first");
}

TEST(TraceDiff, RefusesTracesOfDifferentCases) {
  const Folder folder;
  trace_case(parse_case(kCase), folder / "a.h5");
  std::string other = kCase;
  other.replace(other.find("seed=5"), 6, "seed=6");
  trace_case(parse_case(other), folder / "b.h5");
  try {
    diff_traces(dump::read_dump(folder / "a.h5"), dump::read_dump(folder / "b.h5"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "compare_case: the trace is of seed=6, not of seed=5");
  }
}

}  // namespace
}  // namespace shardproof
