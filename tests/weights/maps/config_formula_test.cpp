#include "weights/maps/config_formula.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

using Value = ConfigFormula::Value;

Value value_of(const std::string& formula) {
  static const Value config = Value::parse(R"({
    "hidden_size": 48, "heads": 6, "half": 0.5, "theta": 1e4, "none": null, "yes": true,
    "types": ["full", "window", "full"], "scaling": {"factor": 8.0, "old": 16}, "word": "silu",
    "far": 9223372036854775807,
    "beyond": 9223372036854775808, "pair": {"beyond": 18446744073709551615}, "empty": [], "n": 1})");
  return ConfigFormula::parse(formula).value([](const std::string& name) -> std::optional<Value> {
    const auto at = config.find(name);
    return at == config.end() ? std::nullopt : std::optional(Value(*at));
  });
}

// As Python prints them.
TEST(ConfigFormula, ByEye) {
  const std::vector<std::pair<const char*, const char*>> rows{
      {"hidden_size // heads", "8"},
      {"hidden_size / heads", "8.0"},
      {"-7 // 2", "-4"},
      {"-7 % 2", "1"},
      {"7 % -2", "-1"},
      {"-7.5 // 2", "-4.0"},
      {"-7.5 % 2", "0.5"},
      {"7 // -1", "-7"},
      {"7 % -1", "0"},
      {"2 ** 3 ** 2", "512"},
      {"-2 ** 2", "-4"},
      {"2 ** -1", "0.5"},
      {"4.0 ** half", "2.0"},
      {"hidden_size ** 0.5 * hidden_size ** 0.5 > 47", "true"},
      {"10 - 4 - 3", "3"},
      {"2 + 3 * 4", "14"},
      {"(2 + 3) * 4", "20"},
      {"16 / 4 / 2", "2.0"},
      {"7 - 2 * -1", "9"},
      {"types[n] == 'window'", "true"},
      {"types[0] != \"full\"", "false"},
      {"types[-1]", "\"full\""},
      {"types[n % len(types)]", "\"window\""},
      {"scaling['factor'] * 2", "16.0"},
      {"len(scaling)", "2"},
      {"'old' in scaling", "true"},
      {"'new' in scaling", "false"},
      {"word in ['silu', 'gelu']", "true"},
      {"3 in [1, 2]", "false"},
      {"not yes", "false"},
      {"not none and not empty", "true"},
      {"none or 5", "5"},
      {"heads or 5", "6"},
      {"none and 5", "null"},
      {"heads and 5", "5"},
      {"1 if yes else 2", "1"},
      {"1 if none else 2", "2"},
      {"1 if 0.0 else 2 if '' else 3", "3"},
      {"1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3", "true"},
      {"2 < 1 or 3 <= 2 or 2 > 3 or 2 >= 3", "false"},
      {"None == none", "true"},
      {"True", "true"},
      {"False", "false"},
      {"1 == 1.0", "true"},
      {"max(1, 3, 2)", "3"},
      {"min(2, 1.5, 3)", "1.5"},
      {"min(2, 2.0)", "2"},
      {"int(2.9)", "2"},
      {"int(-2.9)", "-2"},
      {"round(2.5)", "2"},
      {"round(3.5)", "4"},
      {"round(hidden_size ** 0.5 * 32) / 32", "6.9375"},
      {"sqrt(16)", "4.0"},
      {"log(1)", "0.0"},
      {"abs(-3)", "3"},
      {"abs(-0.5)", "0.5"},
      {"[1, 2.5, 'a', None]", "[1,2.5,\"a\",null]"},
      {"[]", "[]"},
      {"dict(a=1, b='x')", "{\"a\":1,\"b\":\"x\"}"},
      {"dict()", "{}"},
      {"1e-5", "1e-05"},
      {"far", "9223372036854775807"},
      {"yes + 0.0", "1.0"},
      {"  (  heads)  ", "6"}};
  for (const auto& [formula, value] : rows) EXPECT_EQ(value_of(formula).dump(), value) << formula;
}

TEST(ConfigFormula, HasNoValueFor) {
  for (const char* formula : {"missing",
                              "types[3]",
                              "types[-4]",
                              "types['a']",
                              "scaling['b']",
                              "scaling[0]",
                              "heads[0]",
                              "types[0.5]",
                              "word + 1",
                              "none * 2",
                              "types + types",
                              "1 / 0",
                              "1 // 0",
                              "1 % 0",
                              "1.0 // 0.0",
                              "far + 1",
                              "0 - far - 2",
                              "far * 2",
                              "(0 - far - 1) // -1",
                              "log(0)",
                              "sqrt(-1)",
                              "(-8) ** 0.5",
                              "1e308 * 10",
                              "1e300 ** 2",
                              "-word",
                              "1 < word",
                              "word in word",
                              "1 in 2",
                              "len(1)",
                              "len(types, types)",
                              "int('a')",
                              "int(1e300)",
                              "round(types)",
                              "exec(1)",
                              "max()",
                              "min('a', 1)",
                              "rope_cos(1)",
                              "abs(none)"})
    EXPECT_EQ(label_of([&] { value_of(formula); }), "model_map_c2") << formula;
  for (const char* formula : {"beyond", "pair['beyond']", "beyond + 1", "-beyond"})
    EXPECT_EQ(label_of([&] { value_of(formula); }), "model_map_c2") << formula;
  EXPECT_EQ(label_of([] { value_of("1 + '\xff'"); }), "model_map_c2");  // not UTF-8
  EXPECT_TRUE(refuses([] { value_of("missing + 1"); }, "model_map_c2",
                      "'missing + 1': the config has no missing"));
}

TEST(ConfigFormula, IsNotOne) {
  for (const char* formula :
       {"",         " ",   "1 +",    "+ 1",         "(1",   "1)",      "1 2",
        "[1",       "[1,", "[1,]",   "f(",          "f(1",  "dict(1)", "dict(a)",
        "dict(a=)", "a b", "1 if 2", "1 if 2 else", "'a",   "a[",      "a[1",
        "a[]",      "a.b", "1 = 2",  "1 < 2 < 3",   "1..2", "1e",      "99999999999999999999",
        "a = 1",    "not", ".5",     "a; b",        "{1}",  "1 ** ",   "a @ b",
        "inf()x"})
    EXPECT_EQ(label_of([&] { ConfigFormula::parse(formula); }), "model_map_c0") << formula;
}

TEST(ConfigFormula, IsBounded) {
  const auto many = [](int n, const std::string& part) {
    std::string all;
    for (int i = 0; i < n; ++i) all += part;
    return all;
  };
  const auto label = [](const std::string& formula) {
    return label_of([&] { ConfigFormula::parse(formula); });
  };
  EXPECT_EQ(label(many(20, "(") + "1" + many(20, ")")), "");
  EXPECT_EQ(label(many(60, "1 + ") + "1"), "");
  for (const std::string& deep :
       {many(4000, "(") + "1", many(4000, "-") + "1", many(900, "not ") + "1",
        many(4000, "[") + "1", many(1000, "a[0]") + "[0]", "a" + many(1000, "[0]"),
        many(900, "2**") + "2", many(900, "1 + ") + "1", many(400, "1 if 1 else ") + "1",
        many(1000, "f(") + "1"})
    EXPECT_EQ(label(deep), "model_map_c0") << deep.substr(0, 20);
}

TEST(ConfigFormula, SettingsAreAnExample) {
  const auto settings = ConfigFormula::parse_settings("a=1, b = [1, 2], c=dict(d='e, f')");
  ASSERT_EQ(settings.size(), 3U);
  EXPECT_EQ(settings[0].first, "a");
  EXPECT_EQ(settings[2].first, "c");
  const auto none = [](const std::string&) { return std::nullopt; };
  EXPECT_EQ(settings[1].second.value(none).dump(), "[1,2]");
  EXPECT_EQ(settings[2].second.value(none).dump(), "{\"d\":\"e, f\"}");
  for (const char* bad : {"", "a", "a=", "a=1,", "=1", "a=1 b=2", "1=2"})
    EXPECT_EQ(label_of([&] { ConfigFormula::parse_settings(bad); }), "model_map_c0") << bad;
}

TEST(ConfigFormula, GetsWhatMayBeMissing) {
  const auto of = [](const std::string& formula) {
    return ConfigFormula::parse(formula).value([](const std::string& name) -> std::optional<Value> {
      if (name == "a") return Value(4);
      if (name == "none") return Value();
      return std::nullopt;
    });
  };
  EXPECT_EQ(of("get(a)"), 4);
  EXPECT_EQ(of("get(b)"), Value());
  EXPECT_EQ(of("get(none)"), Value());
  EXPECT_EQ(of("get(b) or a // 2"), 2);
  EXPECT_EQ(of("get(b) == True"), false);
  for (const char* formula : {"b", "get()", "get(1)", "get('a')", "get(a, b)", "get(a + 1)"})
    EXPECT_EQ(label_of([&] { of(formula); }), "model_map_c2") << formula;
  std::set<std::string, std::less<>> names;
  ConfigFormula::parse("a[n] if get(b) else dict(c=d, e=[f ** -g])").add_names(names);
  EXPECT_EQ(names, (std::set<std::string, std::less<>>{"a", "b", "d", "f", "g", "n"}));
}

TEST(ConfigFormula, KnowsAWholeCall) {
  EXPECT_EQ(ConfigFormula::parse("rope_cos(1, 2)").called(), "rope_cos");
  EXPECT_EQ(ConfigFormula::parse("rope_cos(1, 2) + 1").called(), "");
  EXPECT_EQ(ConfigFormula::parse("rope_cos").called(), "");
  const auto none = [](const std::string&) { return std::nullopt; };
  EXPECT_EQ(ConfigFormula::parse("f(1 + 1, 'x')").arguments(none), (std::vector<Value>{2, "x"}));
}

// Whole numbers as Python computes them: a == (a // b) * b + a % b, and a % b has b's sign.
RC_GTEST_PROP(ConfigFormula, DividesDown, (std::int32_t a, std::int32_t b)) {
  RC_PRE(b != 0);
  const auto of = [&](const char* op) {
    return value_of("(" + std::to_string(a) + ") " + op + " (" + std::to_string(b) + ")")
        .get<std::int64_t>();
  };
  const std::int64_t quotient = of("//"), rest = of("%");
  RC_ASSERT(quotient * b + rest == a);
  RC_ASSERT(rest == 0 || (rest < 0) == (b < 0));
  RC_ASSERT(std::abs(rest) < std::abs(static_cast<std::int64_t>(b)));
}

}  // namespace
}  // namespace shardproof
