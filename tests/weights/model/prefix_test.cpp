// Shared prefixes: what is read and refused, and which row has which.
#include "weights/model/prefix.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

TEST(SharedPrefix, IsReadAndPrinted) {
  EXPECT_EQ(parse_prefix("5:3"), (SharedPrefix{.length = 5, .rows = 3}));
  for (const char* text : {"5:3", "1:1", "1073741824:1073741824"})
    EXPECT_EQ(parse_prefix(text).to_string(), text);
  EXPECT_TRUE(parse_prefix("5:3").given());
  EXPECT_FALSE(SharedPrefix().given());
  EXPECT_EQ(SharedPrefix().to_string(), "");
}

TEST(SharedPrefix, RefusesWhatIsNone) {
  for (const char* text :
       {"", "5", ":", "5:", ":3", "5:3:1", "0:1", "1:0", "-1:2", "1:-2", "5;3", "a:b", " 5:3",
        "5:3 ", "5:+3", "1.5:2", "1073741825:1", "1:1073741825", "99999999999999999999:1"})
    EXPECT_EQ(message_of([&] { parse_prefix(text); }),
              "case_prefix: prefix=" + std::string(text) +
                  ": not LENGTH:ROWS, two numbers from 1 to 2^30; legal is such as prefix=5:3, 3 "
                  "rows of 5 tokens")
        << text;
}

TEST(SharedPrefix, RefusesABatchThatIsNotItsOwn) {
  EXPECT_EQ(message_of([] {
              require_prefix({2, 4}, 3, 5);
            }),
            "case_prefix: prefix=2:4: 4 rows of prefixes for batch=3; nearest legal: 2:3");
  EXPECT_EQ(message_of([] {
              require_prefix({5, 2}, 3, 5);
            }),
            "case_prefix: prefix=5:2: 5 tokens of prefix, and a row of 5 in all, which needs one "
            "of its own; nearest legal: 4:2");
  EXPECT_EQ(message_of([] {
              require_prefix({1, 1}, 3, 1);
            }),
            "case_prefix: prefix=1:1: 1 tokens of prefix, and a row of 1 in all, which needs one "
            "of its own; nearest legal: no prefix");
  EXPECT_EQ(message_of([] {
              require_prefix({2, 3}, 3, 5);
              require_prefix({4, 2}, 3, 5);
              require_prefix({}, 1, 1);
            }),
            "");
}

TEST(SharedPrefix, OfSevenRowsWithThree) {
  const SharedPrefix three{.length = 5, .rows = 3};
  std::vector<std::int64_t> of_rows, first_rows;
  for (std::int64_t row = 0; row < 7; ++row) of_rows.push_back(three.of_row(row, 7));
  for (std::int64_t prefix = 0; prefix < 3; ++prefix)
    first_rows.push_back(three.first_row(prefix, 7));
  EXPECT_EQ(of_rows, (std::vector<std::int64_t>{0, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(first_rows, (std::vector<std::int64_t>{0, 3, 5}));
}

RC_GTEST_PROP(SharedPrefix, EachIsOfRowsSideBySide, ()) {
  const std::int64_t batch = *rc::gen::inRange<std::int64_t>(1, 40);
  const SharedPrefix prefix{1, *rc::gen::inRange<std::int64_t>(1, batch + 1)};
  std::vector<std::int64_t> rows(static_cast<std::size_t>(prefix.rows), 0);
  for (std::int64_t row = 0, before = 0; row < batch; ++row) {
    const std::int64_t of = prefix.of_row(row, batch);
    RC_ASSERT(of == before || of == before + 1);
    RC_ASSERT((prefix.first_row(of, batch) == row) == (row == 0 || of > before));
    ++rows[static_cast<std::size_t>(of)];
    before = of;
  }
  for (const std::int64_t count : rows) {  // each has some, and none two more than another
    RC_ASSERT(count >= batch / prefix.rows);
    RC_ASSERT(count <= (batch + prefix.rows - 1) / prefix.rows);
  }
}

}  // namespace
}  // namespace shardproof
