// Texts of products: every bracket, turn and word of golden/cases/products.h.
#include "golden/cases/products.h"

#include <gtest/gtest.h>

#include "golden/cases/strata.h"

namespace shardproof::cases {
namespace {

using Lines = std::vector<std::string>;

TEST(Products, ChangeTheFirstBracesLast) {
  EXPECT_EQ(lines_of("a={1|2} b={x|y}z"), (Lines{"a=1 b=xz", "a=1 b=yz", "a=2 b=xz", "a=2 b=yz"}));
  EXPECT_EQ(lines_of("a{|b{1|2}}"), (Lines{"a", "ab1", "ab2"}));
  EXPECT_EQ(lines_of("{1|2}{3|4}{5|6}"),
            (Lines{"135", "136", "145", "146", "235", "236", "245", "246"}));
}

TEST(Products, TakeParenthesesInTurn) {
  EXPECT_EQ(lines_of("{a|b|c|d|e} (x|y) (1|2|3)/2"),
            (Lines{"a x 1", "b y 1", "c x 2", "d y 2", "e x 3"}));
  EXPECT_EQ(lines_of("turn=5 {a|b} (x|(1|2)/3)"), (Lines{" a 2", " b x"}));
  EXPECT_EQ(lines_of("{a|b} (x|y)\n{a|b} (x|y)"), (Lines{"a x", "b y", "a x", "b y"}));
}

TEST(Products, GoOnFromALine) {
  EXPECT_EQ(lines_of("# of all\n{a|b} (x|y|z)\n  1\n  {2|3}  # both\n\nc \\\n  d"),
            (Lines{"a x  1", "a y  2", "a z  3", "b x  1", "b y  2", "b z  3", "c   d"}));
}

TEST(Products, HaveWords) {
  EXPECT_EQ(lines_of("@few = x|y\n@more = @few|z\n{@more}@few"), (Lines{"xx|y", "yx|y", "zx|y"}));
  std::int64_t usual = 0;
  for (const Strategy& s : all_strategies())
    usual += decodes(s) && strata::runs(s, Block::parallel) ? 1 : 0;
  EXPECT_EQ(std::ssize(lines_of("{@all}")), std::ssize(all_strategies()));
  EXPECT_EQ(std::ssize(lines_of("{@usual}")), usual);
  EXPECT_LT(usual, std::ssize(all_strategies()));
}

void expect_cases(const char* text, const Lines& lines) {
  std::vector<Case> wanted;
  for (const std::string& line : lines) wanted.push_back(parse_case(line));
  EXPECT_EQ(cases_of(text), wanted) << text;
}

TEST(Products, AreCases) {
  expect_cases("torus={2x1x1|1x1x1} strategy=ws1d batch=4//9 gen=3 act=",
               {"torus=2x1x1 prefill=ws1d decode=ws1d batch=4 gen=3",
                "torus=1x1x1 prefill=ws1d decode=ws1d batch=4 gen=3"});
  // One that does not decode, and one without parallel blocks.
  expect_cases("torus=2x1x3 strategy=sp:1d prompt=7//3L lengths=7//3L,2L+1,L batch=6//3",
               {"torus=2x1x3 prefill=sp:1d decode=ws2d:heads prompt=18 lengths=18,13,6 batch=3"});
  expect_cases("torus=2x1x3 strategy=mixed:1d-2d block=parallel",
               {"torus=2x1x3 prefill=mixed:1d-2d decode=mixed:1d-2d block=serial"});
  // Pairs of two.
  expect_cases("torus=1x1x1 prefill={ws1d|ws2d} decode={ws1d|ws2d}",
               {"torus=1x1x1 prefill=ws1d decode=ws2d", "torus=1x1x1 prefill=ws2d decode=ws1d"});
  EXPECT_THROW(cases_of("torus=1x1x1 gem=2"), Error);
}

}  // namespace
}  // namespace shardproof::cases
