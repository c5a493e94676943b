// The member `shardproof` of an npz.
#include "golden/trace/read/detail/json_attributes.h"

#include <gtest/gtest.h>

#include <string>

#include "golden/trace/read/detail/unicode.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

std::string refused(const std::string& text) {
  return label_of([&] { parse_json_attributes(text); });
}

TEST(JsonAttributes, AreTexts) {
  const JsonAttributes read = parse_json_attributes(R"({
    "format": "shardproof trace", "version": 1, "one": 1.0, "half": 0.5, "least": -3e0, "none": null,
    "yes": true, "mesh": ["data", "model"], "seed": 18446744073709551615, "far": 1e300,
    "text": "zwölf\n", "own": {"a": [1]},
    "values": {"a.b": {"layout": "BLE_x", "spec": [null, ["x", "y"]], "layer": 2}, "c": {}}})");
  EXPECT_EQ(read.file, (Attributes{{"format", "shardproof trace"},
                                   {"version", "1"},
                                   {"one", "1"},
                                   {"half", "0.5"},
                                   {"least", "-3"},
                                   {"yes", "true"},
                                   {"mesh", R"(["data","model"])"},
                                   {"seed", "18446744073709551615"},
                                   {"far", "1e+300"},
                                   {"text", "zwölf\n"},
                                   {"own", R"({"a":[1]})"}}));
  ASSERT_EQ(read.values.size(), 2U);
  EXPECT_EQ(read.values.at("a.b"),
            (Attributes{{"layout", "BLE_x"}, {"spec", R"([null,["x","y"]])"}, {"layer", "2"}}));
  EXPECT_EQ(read.values.at("c"), Attributes());
}

TEST(JsonAttributes, AreRefused) {
  for (const char* bad : {"", "{", "[]", "1", "\"format\"", "{\"a\": NaN}", "{\"a\": 1} x",
                          "{'a': 1}", "{\"a\": 1, \"a\": 2}", "{\"a\": {\"b\": 1, \"b\": 1}}",
                          "{\"a\": \"\xff\"}", "{\"a\": \"\\ud800\"}", "{\"a\n\": \x01}"})
    EXPECT_EQ(refused(bad), "dump_format") << bad;
  EXPECT_EQ(refused("{\"a\": {\"b\": 1}, \"b\": 1}"), "");
  for (const char* bad :
       {"{\"values\": []}", "{\"values\": null}", "{\"values\": {\"a\": \"BLE\"}}"})
    EXPECT_EQ(refused(bad), "dump_value") << bad;
  EXPECT_EQ(refused("{\"a\": \"" + std::string(64 << 10, 'x') + "\"}"), "");
  EXPECT_EQ(refused("{\"a\": \"" + std::string((64 << 10) + 1, 'x') + "\"}"), "dump_value");
}

TEST(JsonAttributes, AreNotNestedForEver) {
  const auto nested = [](int depth) {
    return "{\"a\": " + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']') + "}";
  };
  EXPECT_EQ(refused(nested(20)), "");
  EXPECT_EQ(refused(nested(40)), "dump_format");
  EXPECT_EQ(refused(nested(1 << 20)), "dump_format");
  EXPECT_EQ(refused(std::string(1 << 20, '[')), "dump_format");
}

std::string utf8(std::initializer_list<std::uint32_t> characters, bool big = false) {
  std::vector<std::byte> bytes;
  for (const std::uint32_t c : characters)
    for (int i = 0; i < 4; ++i)
      bytes.push_back(static_cast<std::byte>(c >> 8 * (big ? 3 - i : i) & 0xFFU));
  return utf8_of_ucs4(bytes, big);
}

TEST(JsonAttributes, NumPysTextsAreUtf8) {
  for (const bool big : {false, true})
    EXPECT_EQ(utf8({'a', 0xE9, 0x20AC, 0x1F600, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10FFFF}, big),
              "aé€😀\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF4\x8F\xBF\xBF");
  for (const std::uint32_t bad : {0xD800U, 0xDFFFU, 0x110000U, 0xFFFFFFFFU})
    EXPECT_EQ(label_of([&] { utf8({bad}); }), "dump_format");
}

}  // namespace
}  // namespace shardproof::dump
