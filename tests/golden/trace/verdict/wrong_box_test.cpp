// Which elements are wrong, where these are whole indices of dims.
#include "golden/trace/verdict/wrong_box.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace shardproof::dump {
namespace {

using Box = std::vector<std::vector<std::int64_t>>;

TEST(WrongBox, OfAFewByEye) {
  const Shape shape{2, 3};
  EXPECT_EQ(wrong_box(shape, {false, true, false, false, true, false}), (Box{{0, 1}, {1}}));
  EXPECT_EQ(wrong_box(shape, {false, false, false, true, true, true}), (Box{{1}, {0, 1, 2}}));
  EXPECT_TRUE(wrong_box(shape, {true, false, false, false, true, false}).empty());
  EXPECT_TRUE(wrong_box(shape, {true, false, false, false, false, false}).empty());
  EXPECT_TRUE(wrong_box(shape, std::vector<bool>(6, true)).empty());
  EXPECT_TRUE(wrong_box(shape, std::vector<bool>(6, false)).empty());
}

TEST(WrongBox, OfPaddingTakesNoNotice) {
  const Shape shape{2, 3};
  const std::vector<bool> padding{false, false, false, false, true, true};
  EXPECT_EQ(wrong_box(shape, {true, true, false, true, false, false}, padding),
            (Box{{0, 1}, {0, 1}}));
  EXPECT_EQ(wrong_box(shape, {false, true, true, false, false, false}, padding),
            (Box{{0}, {1, 2}}));
  EXPECT_TRUE(wrong_box(shape, {true, true, true, true, false, false}, padding).empty()) << "all";
  EXPECT_TRUE(wrong_box(shape, {true, true, false, true, false, false}).empty());
}

RC_GTEST_PROP(WrongBox, IsTheBoxAndNothingElse, ()) {
  const Shape shape{3, 2, 4};
  Box box;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    const auto some =
        *rc::gen::suchThat(rc::gen::container<std::vector<bool>>(static_cast<std::size_t>(extent),
                                                                 rc::gen::arbitrary<bool>()),
                           [](const std::vector<bool>& of) {
                             return std::find(of.begin(), of.end(), true) != of.end();
                           });
    box.emplace_back();
    for (std::size_t i = 0; i < some.size(); ++i)
      if (some[i]) box.back().push_back(static_cast<std::int64_t>(i));
    count *= std::ssize(box.back());
  }
  std::vector<bool> wrong(24, false);
  for (const std::int64_t a : box[0])
    for (const std::int64_t b : box[1])
      for (const std::int64_t c : box[2])
        wrong[static_cast<std::size_t>((a * 2 + b) * 4 + c)] = true;
  RC_ASSERT(wrong_box(shape, wrong) == (count < 2 || count == 24 ? Box() : box));
  // One less is none, unless two are left of which all but one index agree.
  if (count > 4 && count < 24) {
    *std::find(wrong.begin(), wrong.end(), true) = false;
    const bool line =
        std::count_if(box.begin(), box.end(), [](const auto& of) { return of.size() > 1; }) == 1;
    RC_ASSERT(wrong_box(shape, wrong).empty() == !line);
  }
}

}  // namespace
}  // namespace shardproof::dump
