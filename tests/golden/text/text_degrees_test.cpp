// What the unsharded run of a text counts in the field regime, by hand for a text of few lines.
#include "golden/verdict/text_degrees.h"

#include <gtest/gtest.h>

#include "golden/verdict/field_equality.h"
#include "tests/golden/text/text_case.h"

namespace shardproof {
namespace {

constexpr std::string_view kText = R"(model counted
dim E channels
dim V vocabulary
number eps
small layers=2, E=3, V=5, eps=1e-6

embedding
weight table : VE
embed : BLE = gather(table, ids, V)
far : BLM = sub(slot, pos)
see : BLM = within(far, -inf, 0)

layer
weight g : E
square : BLE = mul(in, in)
root : BL = sqrt(add(sum(square, E), eps))
norm : BLE = div(in, root)
cache : BME = append(norm, pos)
score : BLM where see = einsum(BLE,BME->BLM; norm, cache)
most : BL = max(score, M)
weight_of : BLM = exp(sub(score, most))
total : BL = sum(weight_of, M)
share : BLM = div(weight_of, total)
mixed : BLE = einsum(BLM,BME->BLE; share, cache)
out : BLE = store(mul(mixed, g))

head
logits : BLV = einsum(BLE,VE->BLV; in, table)
)";

ModelText text_of(std::string_view old_line = "", std::string_view new_line = "") {
  std::string text(kText);
  if (!old_line.empty()) text.replace(text.find(old_line), old_line.size(), new_line);
  return parse_model_text(text);
}

FieldCounts counts(const ModelText& text, NumberFormat act = NumberFormat::f32) {
  // Two rows of three tokens, then a decode step: M is 3 and 4.
  return counts_of_text(TextModel(text, {}, "counted.model"), act, Passes(2, 3, 3, 2));
}

TEST(DegreesOfTexts, CountEachFunctionOncePerElement) {
  const FieldCounts f32 = counts(text_of());
  // By layer: rows times tokens, and slots where there are some.
  EXPECT_EQ(f32.applied.at("sqrt"), 2 * (2 * 3 + 2 * 1));
  EXPECT_EQ(f32.applied.at("score to max"), 2 * (2 * 3 * 3 + 2 * 1 * 4));
  EXPECT_EQ(f32.applied.at("score to exp"), 2 * (2 * 3 * 3 + 2 * 1 * 4));
  EXPECT_EQ(f32.applied.at("max to exp"), 2 * (2 * 3 + 2 * 1));
  EXPECT_EQ(f32.applied.size(), 4U);  // positions are compared as integers
  const FieldCounts bf16 = counts(text_of(), NumberFormat::bf16);
  EXPECT_EQ(bf16.applied.at("bf16"), 2 * (2 * 3 * 3 + 2 * 1 * 3));
}

TEST(DegreesOfTexts, CountEachDivisor) {
  std::int64_t roots = 0, totals = 0;
  for (const auto& [division, times] : counts(text_of()).divided) {
    EXPECT_TRUE(division.second.e.empty()) << "no divisor is a quotient";
    // A root has the degree of a function's result, a sum of products of two that of both.
    (division.second.a == 1 ? roots : totals) += times;
  }
  EXPECT_EQ(roots, 2 * (2 * 3 + 2 * 1));
  EXPECT_EQ(totals, 2 * (2 * 3 + 2 * 1));
}

TEST(DegreesOfTexts, AreThoseOfSumsProductsAndQuotients) {
  const FieldCounts all = counts(text_of());
  std::int64_t most = 0;
  std::map<int, std::int64_t> quotients;
  for (const FieldDegree& degree : all.degrees) {
    most = std::max(most, degree.a);
    for (const auto& [number, e] : degree.e) quotients[number] = std::max(quotients[number], e);
  }
  // Layer 0: norm = embed / root is 1 over one division, mixed = share * cache 2 + 1 over two,
  // out 4. Layer 1: norm is 4, score 4 + 4, mixed 2 + 4, out 7; logits 7 + 1.
  EXPECT_EQ(most, 8);
  EXPECT_EQ(quotients.size(), 4U);  // two divisions in each layer
  // The score of layer 1 is a product of two values with the divisions of layer 0.
  EXPECT_EQ(quotients.begin()->second, 2);
}

TEST(DegreesOfTexts, OfMoreOpsMakeTheBoundLarger) {
  const FieldSetting setting;
  const auto bound = [&](const ModelText& text, NumberFormat act = NumberFormat::f32) {
    return field_equality(setting, counts(text, act));
  };
  const FieldEquality plain = bound(text_of());
  EXPECT_GT(plain.degree, 8);
  const std::string out = "out : BLE = store(mul(mixed, g))";
  const auto with = [&](const char* line) { return bound(text_of(out, line)); };
  EXPECT_GT(with("out : BLE = mul(mul(mixed, g), g)").degree, plain.degree);
  EXPECT_GT(with("out : BLE = div(mul(mixed, g), tanh(mixed))").degree, plain.degree);
  EXPECT_GT(with("out : BLE = div(g, mixed)").degree, plain.degree);
  EXPECT_EQ(with("out : BLE = mul(div(mixed, E), g)").degree, plain.degree);
  EXPECT_EQ(with("out : BLE = mul(mul(mixed, 2), g)").degree, plain.degree);
  EXPECT_GT(with("out : BLE = mul(mul(mixed, 0.5), g)").degree, plain.degree);
  EXPECT_GT(with("out : BLE = mul(tanh(mixed), g)").applications, plain.applications);
  EXPECT_GT(with("out : BLE = larger(mixed, g)").applications, plain.applications);
  EXPECT_GT(bound(text_of(), NumberFormat::bf16).applications, plain.applications);
}

}  // namespace
}  // namespace shardproof
