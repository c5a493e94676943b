#include "weights/base/detail/words.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

using Parts = std::vector<std::string_view>;

TEST(Words, AreTrimmed) {
  EXPECT_EQ(trim(" \ta b \r"), "a b");
  EXPECT_EQ(trim("\t \r"), "");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim("\ra"), "\ra");
}

TEST(Words, AreSplit) {
  EXPECT_EQ(split(" a , b,,c ", ","), (Parts{"a", "b", "", "c"}));
  EXPECT_EQ(split("a->b", "->"), (Parts{"a", "b"}));
  EXPECT_EQ(split("", ","), Parts{""});
  EXPECT_EQ(split("a,", ","), (Parts{"a", ""}));
}

TEST(Words, OfArgumentsInParenthesesAreOne) {
  EXPECT_EQ(split_arguments("a, f(b, c), g(h(d, e), f)", ','),
            (Parts{"a", "f(b, c)", "g(h(d, e), f)"}));
  EXPECT_EQ(split_arguments("a", ','), Parts{"a"});
  EXPECT_EQ(split_arguments("", ','), Parts{""});
  EXPECT_EQ(split_arguments("(a),", ','), (Parts{"(a)", ""}));
}

}  // namespace
}  // namespace shardproof
