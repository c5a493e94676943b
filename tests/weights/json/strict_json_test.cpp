// JSON of others: what is refused, and with which words.
#include "weights/json/strict_json.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace shardproof {
namespace {

/// Returns why a text is refused, or "".
std::string refused_json(const std::string& text) {
  try {
    parse_strict_json(text, [](const std::string& why) { throw std::runtime_error(why); });
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(StrictJson, IsRead) {
  const auto refuse = [](const std::string& why) { throw std::runtime_error(why); };
  const std::string text = R"({"a":[1,-2,0.5,"x",null,true],"b":{"a":{}}})";
  EXPECT_EQ(parse_strict_json(text, refuse).dump(), text);
  EXPECT_EQ(parse_strict_json("3", refuse), 3);
}

TEST(StrictJson, ANameStandsOnceInItsObject) {
  EXPECT_EQ(refused_json(R"({"a":{"a":1},"b":[{"a":1},{"a":2}]})"), "");
  EXPECT_EQ(refused_json(R"({"a":1,"b":2,"a":3})"), "names \"a\" twice");
  EXPECT_EQ(refused_json(R"({"b":[{"c\n":1,"c\n":2}]})"), "names \"c\\n\" twice");
}

TEST(StrictJson, NothingIsDeeperThanThirtyTwo) {
  const auto nested = [](int depth, const std::string& inner) {
    std::string text = inner;
    for (int i = 0; i < depth; ++i) text = i % 2 == 0 ? "[" + text + "]" : "{\"a\":" + text + "}";
    return text;
  };
  for (const char* inner : {"1", "\"x\"", "null", "true", "0.5", "-1", "[]", "{}"}) {
    EXPECT_EQ(refused_json(nested(32, inner)), "") << inner;
    EXPECT_EQ(refused_json(nested(33, inner)), "is nested deeper than 32") << inner;
  }
}

TEST(StrictJson, WhatIsNotJsonIsSaidInOneLine) {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\" 1}", "nul", "1 2", "\"\n\"", "\"\xFF\"", "1e999"}) {
    const std::string why = refused_json(text);
    EXPECT_TRUE(why.starts_with("is not JSON: [json.exception.")) << text << ": " << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
    EXPECT_LT(why.size(), 330U);
  }
}

}  // namespace
}  // namespace shardproof
