#include "weights/text/sizes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "tests/weights/text/plain_model.h"

namespace shardproof {
namespace {

double value_of(const char* formula) {
  return Formula::parse(formula).value([](std::string_view name) -> std::optional<double> {
    if (name == "Q") return 64.0;
    if (name == "H") return 7.0;
    if (name == "window") return 4.0;
    return std::nullopt;
  });
}

TEST(FormulaOfSizes, IsArithmetic) {
  EXPECT_EQ(value_of("1 - window"), -3.0);
  EXPECT_EQ(value_of("H // 2 * 3"), 9.0);
  EXPECT_EQ(value_of("2 - 3 - 4"), -5.0);
  EXPECT_EQ(value_of("2 - (3 - 4)"), 3.0);
  EXPECT_EQ(value_of("-H // 2"), -4.0);
  EXPECT_EQ(value_of("8 / 2 / 2"), 2.0);
  EXPECT_EQ(value_of("2 ** 3 ** 2"), 512.0);
  EXPECT_EQ(value_of("-2 ** 2"), -4.0);
  EXPECT_EQ(value_of("1e-3 * 2e+3"), 2.0);
  EXPECT_EQ(value_of("Q ** -0.5"), 0.125);
  EXPECT_EQ(value_of("Q ** 0.5"), 8.0);
  EXPECT_EQ(value_of("1 / sqrt(H)"), 1.0 / std::sqrt(7.0));
  EXPECT_EQ(value_of("H ** -0.5"), 1.0 / std::sqrt(7.0));
  EXPECT_EQ(value_of("-inf"), -HUGE_VAL);
}

TEST(FormulaOfSizes, RefusesWhatIsNotANumber) {
  const auto label = [](const char* formula) {
    try {
      value_of(formula);
    } catch (const Error& error) {
      return error.label();
    }
    return std::string("none");
  };
  for (const char* formula : {"1 / 0", "0 / 0", "sqrt(-1)", "H // 0", "inf - inf", "1e300 * 1e300"})
    EXPECT_EQ(label(formula), "model_c14") << formula;
  EXPECT_EQ(label("Q * T"), "model_c1");
  for (const char* formula :
       {"", "1 +", "* 2", "sqrt 2", "sqrt(2", "2)", "a..b", "1 2", "()", "1e", "-"})
    EXPECT_EQ(label(formula), "model_c0") << formula;
  EXPECT_EQ(label((std::string(500, '(') + "1" + std::string(500, ')')).c_str()), "model_c0");
  EXPECT_EQ(label((std::string(500, '-') + "1").c_str()), "model_c0");
}

/// Each operator after each, on either side: parentheses stay where they mean something, and only
/// there.
TEST(FormulaOfSizes, PrintsTheParenthesesThatItNeeds) {
  for (const char* formula :
       {"2 - (3 - 4)", "2 - (3 + 4)", "2 - 3 - 4",   "2 - 3 + 4",     "2 - 3 * 4",
        "(2 - 3) * 4", "2 / (3 / 4)", "2 / (3 * 4)", "2 / 3 / 4",     "2 // (3 // 4)",
        "2 // 3 * 4",  "2 * (3 + 4)", "2 ** 3 ** 4", "(2 ** 3) ** 4", "(2 * 3) ** 4",
        "2 ** -4",     "-2 ** 4",     "(-2) ** 4",   "-(2 + 3)",      "-(2 * 3)",
        "sqrt(2 - 3)"})
    EXPECT_EQ(Formula::parse(formula).to_string(), formula);
  EXPECT_EQ(Formula::parse("((2 - (3)) - (4 * 5))").to_string(), "2 - 3 - 4 * 5");
}

/// A random formula, as text with all its parentheses.
std::string drawn_formula(int depth) {
  const int which = *rc::gen::inRange(0, depth == 0 ? 3 : 9);
  const auto inner = [&] { return drawn_formula(depth - 1); };
  switch (which) {
    case 0:
      return "Q";
    case 1:
      return "H";
    case 2:
      return std::to_string(*rc::gen::inRange(1, 9)) + ".5";
    case 3:
      return "sqrt(" + inner() + ")";
    case 4:
      return "(-" + inner() + ")";
    default: {
      const char* const signs[] = {" + ", " - ", " * ", " / "};
      return "(" + inner() + signs[*rc::gen::inRange(0, 4)] + inner() + ")";
    }
  }
}

RC_GTEST_PROP(FormulaOfSizes, PrintsWhatItReads, ()) {
  const std::string text = drawn_formula(4);
  const Formula formula = Formula::parse(text);
  const std::string printed = formula.to_string();
  RC_LOG() << text << " prints as " << printed << "\n";
  RC_ASSERT(Formula::parse(printed) == formula);
  RC_ASSERT(printed.size() <= text.size());
}

std::string label_of(const TextKeys& keys, const std::string& text = std::string(kPlainModel)) {
  try {
    (void)sizes_of(parse_model_text(text, "plain.model"), keys);
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("plain"), std::string::npos);
    return error.label();
  }
  return "none";
}

TEST(TextSizes, AreTheKeysThenTheFormulasThenTheSmallOnes) {
  const ModelText text = parse_model_text(kPlainModel);
  const TextSizes small = sizes_of(text);
  EXPECT_EQ(small.layers, 2);
  EXPECT_EQ(small.extents, (std::map<char, std::int64_t>{{'A', 8},
                                                         {'E', 8},
                                                         {'G', 2},
                                                         {'H', 4},
                                                         {'K', 2},
                                                         {'P', 32},
                                                         {'Q', 4},
                                                         {'V', 12},
                                                         {'X', 3}}));
  EXPECT_EQ(small.numbers.find("scale")->second, 0.5);
  EXPECT_EQ(small.numbers.find("near")->second, -2.0);
  EXPECT_EQ(small.flags.find("local")->second, (std::vector<bool>{true, false}));
  EXPECT_TRUE(small.has(Guard{"local", true}, 0));
  EXPECT_FALSE(small.has(Guard{"local", true}, 1));
  EXPECT_FALSE(small.has(Guard{"local", false}, 0));
  EXPECT_TRUE(small.has(std::nullopt, 1));
  const TextSizes large =
      sizes_of(text, {{"E", "16"}, {"H", "8"}, {"layers", "3"}, {"local", "0"}, {"near", "-1"}});
  EXPECT_EQ(large.extents.at('A'), 16);
  EXPECT_EQ(large.extents.at('G'), 4);
  EXPECT_EQ(large.numbers.find("near")->second, -1.0);
  EXPECT_EQ(large.flags.find("local")->second, (std::vector<bool>{false, false, false}));
  EXPECT_EQ(large.number("E"), 16.0);
  EXPECT_EQ(large.number("near"), -1.0);
  EXPECT_EQ(large.number("-inf"), -HUGE_VAL);
}

TEST(TextSizes, RefuseWhatIsNotASize) {
  EXPECT_EQ(label_of({}), "none");
  EXPECT_EQ(label_of({{"Z", "1"}}), "model_c1");
  EXPECT_EQ(label_of({{"embed", "1"}}), "model_c1");
  for (const char* extent : {"0", "-1", "1.5", "1e18", "2147483648", "inf", "x", ""})
    EXPECT_EQ(label_of({{"E", extent}}), "model_c14") << extent;
  for (const char* layers : {"0", "4097", "1.5", "-2"})
    EXPECT_EQ(label_of({{"layers", layers}}), "model_c14") << layers;
  EXPECT_EQ(label_of({{"K", "8"}}), "model_c14");  // G = 4 // 8
  EXPECT_EQ(label_of({{"eps", "inf"}}), "model_c14");
  EXPECT_EQ(label_of({{"eps", "one"}}), "model_c14");
  for (const char* flags : {"", "2", "101", "1x", "1 0"})
    EXPECT_EQ(label_of({{"local", flags}}), "model_c15") << flags;
  EXPECT_EQ(label_of({{"X", "1"}}), "model_c16");              // top takes 2
  EXPECT_EQ(label_of({{"K", "3"}, {"H", "4"}}), "model_c16");  // 4 heads are not 3 of 1
  EXPECT_EQ(label_of({{"E", "2"}}), "model_c16");              // turn takes 4 channels
  const std::pair<const char*, const char*> edits[] = {
      {"final : BLE = turn(in, E, half 4)", "final : BLE = turn(in, E, half 3)"},
      {"final : BLE = turn(in, E, half 4)", "final : BLE = turn(in, E, half 10)"},
      {"final : BLE = turn(in, E, half 4)", "final : BLE = turn(in, E, half -2)"},
      {"chosen : BLX = top(einsum(BLE,EX->BLX; norm, w_router), X, 2)",
       "chosen : BLX = top(einsum(BLE,EX->BLX; norm, w_router), X, 1.5)"},
      {"chosen : BLX = top(einsum(BLE,EX->BLX; norm, w_router), X, 2)",
       "chosen : BLX = top(einsum(BLE,EX->BLX; norm, w_router), X, 0)"}};
  for (const auto& [before, after] : edits) {
    try {
      (void)sizes_of(parse_model_text(with_line(before, after)));
      ADD_FAILURE() << after;
    } catch (const Error& error) {
      EXPECT_EQ(error.label(), "model_c16") << after;
    }
  }
  EXPECT_EQ(label_of({}, with_line("dim G = H // K", "dim G = G + 1")), "model_c14");
  EXPECT_EQ(label_of({}, with_line("number near = 1 - 3", "number near = E * E / 0")), "model_c14");
  EXPECT_EQ(label_of({}, with_line("number eps", "number eps\nnumber other")), "model_c14");
}

/// How the text is refused with other sizes of eps, layers and local.
std::string refusal_with(const std::string& sizes, const TextKeys& keys = {}) {
  const std::string_view small = "small E=8, H=4, K=2, P=32, Q=4, V=12, X=3, ";
  try {
    const std::string text =
        with_line(std::string(small) + "eps=1e-6, layers=2, local=10", std::string(small) + sizes);
    (void)sizes_of(parse_model_text(text, "m.model"), keys);
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

TEST(TextSizes, NameTheLineOfSmallSizesAndOfFlags) {
  const std::pair<const char*, std::string> edits[] = {
      {"eps=x, layers=2, local=10", "line 15: eps=x is not a number"},
      {"eps=inf, layers=2, local=10", "line 15: the number eps is inf, not finite"},
      {"eps=1, layers=two, local=10", "line 15: layers=two is not a number"},
      {"eps=1, layers=0, local=10", "line 15: layers is 0, not a whole number"},
      {"eps=1, layers=2, local=101", "line 15: the flag local is 101, not a 0 or 1"},
      {"eps=1, layers=2", "line 11: the flag local is not given, not a 0 or 1"}};
  for (const auto& [sizes, said] : edits)
    EXPECT_TRUE(refusal_with(sizes).starts_with("plain: m.model " + said)) << refusal_with(sizes);
  // What the use gives stands in no line.
  const std::string bad = "eps=x, layers=0, local=101";
  const TextKeys good{{"eps", "1"}, {"layers", "2"}, {"local", "0"}};
  EXPECT_EQ(refusal_with(bad, good), "none");
  for (const auto& [key, said] : {std::pair{"eps", "eps=y is not"},
                                  {"layers", "layers=y is not"},
                                  {"local", "the flag local is y"}}) {
    TextKeys keys = good;
    keys[key] = "y";
    EXPECT_TRUE(refusal_with(bad, keys).starts_with("plain: " + std::string(said)))
        << refusal_with(bad, keys);
  }
}

}  // namespace
}  // namespace shardproof
