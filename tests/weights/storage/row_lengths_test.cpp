// How long the rows of a batch are: what is read, printed and drawn.
#include "weights/storage/row_lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/weights/expect_error.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

using Lengths = std::vector<std::int64_t>;

TEST(RowLengths, AreReadAndPrinted) {
  for (const char* text : {"ragged", "7", "7,3,5,1"})
    EXPECT_EQ(parse_row_lengths(text).to_string(), text);
  EXPECT_TRUE(parse_row_lengths("ragged").ragged);
  EXPECT_EQ(parse_row_lengths("7,3").cycle, (Lengths{7, 3}));
  EXPECT_FALSE(RowLengths().given());
  EXPECT_EQ(RowLengths().to_string(), "");
}

TEST(RowLengths, RefuseWhatIsNoLength) {
  for (const char* text : {"", ",", "3,", "3;4", "x", "3.5", "raged", "99999999999999999999"})
    EXPECT_TRUE(message_of([&] { parse_row_lengths(text); }).starts_with("case_lengths: lengths="))
        << text;
  EXPECT_EQ(message_of([] { parse_row_lengths("3,0"); }),
            "case_lengths: lengths=3,0: a row has at least 1 token, not 0; nearest legal: 1");
  EXPECT_EQ(message_of([] {
              lengths_of_rows({false, {3, 8}}, 1, 4, 7);
            }),
            "case_lengths: lengths=3,8: a row has from 1 to prompt=7 tokens, not 8; nearest legal: "
            "7");
  EXPECT_EQ(message_of([] {
              lengths_of_rows({false, {3, 2, 1}}, 1, 2, 7);
            }),
            "case_lengths: lengths=3,2,1: 3 lengths for batch=2; nearest legal: 2 lengths");
}

TEST(RowLengths, AreRepeatedCyclically) {
  EXPECT_EQ(lengths_of_rows({false, {7, 3, 5}}, 1, 7, 7), (Lengths{7, 3, 5, 7, 3, 5, 7}));
  EXPECT_EQ(lengths_of_rows({}, 1, 3, 7), (Lengths{7, 7, 7}));
}

TEST(RowLengths, AreDrawnFromOneToThePrompt) {
  for (const std::int64_t prompt : {1, 2, 7}) {
    const Lengths drawn = lengths_of_rows({true, {}}, 5, 200, prompt);
    EXPECT_EQ(std::set<std::int64_t>(drawn.begin(), drawn.end()).size(),
              static_cast<std::size_t>(prompt));
    EXPECT_EQ(*std::min_element(drawn.begin(), drawn.end()), 1);
    EXPECT_EQ(*std::max_element(drawn.begin(), drawn.end()), prompt);
    for (std::size_t r = 0; r < drawn.size(); ++r)
      EXPECT_EQ(drawn[r], 1 + (static_cast<std::uint64_t>(counter_random(5, "length", r)[0]) *
                                   static_cast<std::uint64_t>(prompt) >>
                               32));
    // A row's length is its own: it does not depend on the batch.
    EXPECT_EQ(lengths_of_rows({true, {}}, 5, 3, prompt), Lengths(drawn.begin(), drawn.begin() + 3));
  }
  EXPECT_NE(lengths_of_rows({true, {}}, 5, 20, 7), lengths_of_rows({true, {}}, 6, 20, 7));
}

TEST(RowLengths, AreDrawnFromBehindThePrefixToThePrompt) {
  for (const auto& [prefix, prompt] : {std::pair<std::int64_t, std::int64_t>{1, 2}, {3, 7}}) {
    const Lengths drawn = lengths_of_rows({true, {}}, 5, 200, prompt, prefix);
    EXPECT_EQ(*std::min_element(drawn.begin(), drawn.end()), prefix + 1);
    EXPECT_EQ(*std::max_element(drawn.begin(), drawn.end()), prompt);
    // What is left of a row behind the prefix is drawn as a row without one.
    Lengths own = lengths_of_rows({true, {}}, 5, 200, prompt - prefix);
    for (std::int64_t& length : own) length += prefix;
    EXPECT_EQ(drawn, own);
  }
  EXPECT_EQ(lengths_of_rows({false, {7, 3}}, 1, 3, 7, 2), (Lengths{7, 3, 7}));
  EXPECT_EQ(lengths_of_rows({}, 1, 2, 7, 2), (Lengths{7, 7}));
}

}  // namespace
}  // namespace shardproof
