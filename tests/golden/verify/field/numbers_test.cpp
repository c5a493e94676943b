// The engine's numbers and those of the unsharded model share no code: here they meet.
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "engine/ops/field_product.h"
#include "engine/shards/field.h"
#include "oracle/field/detail/arithmetic.h"
#include "oracle/field/detail/philox.h"
#include "oracle/field/detail/random.h"

namespace shardproof {
namespace {

using oracle::field::Number;

FieldSetting any_setting() {
  return {.seed = *rc::gen::arbitrary<std::uint64_t>(),
          .bits = *rc::gen::element(61, 61, 31, 5, 3),
          .lanes = *rc::gen::inRange(1, 4),
          .draw = *rc::gen::inRange(0, 2)};
}

/// A number of the setting: any, or one at an end.
FieldElement any_number(const FieldSetting& setting) {
  const std::uint64_t p = (std::uint64_t{1} << setting.bits) - 1;
  FieldElement v{};
  for (std::size_t n = 0; n < static_cast<std::size_t>(setting.lanes); ++n)
    v.lane[n] = *rc::gen::oneOf(
        rc::gen::element<std::uint64_t>(0, 1, p - 1),
        rc::gen::map(rc::gen::arbitrary<std::uint64_t>(), [p](std::uint64_t x) { return x % p; }));
  return v;
}

Number same(const FieldElement& v) { return {v.lane}; }

RC_GTEST_PROP(FieldNumbers, EngineAndOracleComputeAlike, ()) {
  const FieldSetting setting = any_setting();
  const Field field(setting);
  const oracle::field::Arithmetic math(setting);
  const FieldElement a = any_number(setting);
  const FieldElement b = any_number(setting);
  RC_ASSERT(same(field.add(a, b)) == math.add(same(a), same(b)));
  RC_ASSERT(same(field.subtract(a, b)) == math.subtract(same(a), same(b)));
  RC_ASSERT(same(field.multiply(a, b)) == math.multiply(same(a), same(b)));
  const auto i = *rc::gen::arbitrary<std::int64_t>();
  RC_ASSERT(same(field.integer(i / 2)) == math.integer(i / 2));
  if (!math.zero_lane(same(a))) {
    RC_ASSERT(same(field.inverse(a)) == math.inverse(same(a)));
    RC_ASSERT(field.multiply(field.inverse(a), a) == field.integer(1));
  }
}

RC_GTEST_PROP(FieldNumbers, RandomFunctionsAndStreamsAreAlike, ()) {
  const FieldSetting setting = any_setting();
  const Field field(setting);
  const oracle::field::Random random(setting);
  const auto name = *rc::gen::element<std::string>("swish", "bf16", "logit", "norm E=96 eps=0x0p+0",
                                                   "weight layer0.wq");
  const FieldElement v = any_number(setting);
  const std::uint64_t hash = oracle::field::fnv1a64(name);
  RC_ASSERT(same(field.apply(field.function(name), v)) == random.function(hash, same(v)));
  const oracle::field::Tensor stream = random.stream(name, {7});
  for (std::size_t i = 0; i < 7; ++i)
    RC_ASSERT(same(field.input(field.function(name), i)) == stream.data[i]);
}

RC_GTEST_PROP(FieldNumbers, ContractionsAreAlike, ()) {
  const FieldSetting setting = any_setting();
  const Field field(setting);
  const oracle::field::Arithmetic math(setting);
  const auto M = *rc::gen::inRange<std::int64_t>(1, 4);
  const auto N = *rc::gen::inRange<std::int64_t>(1, 4);
  std::vector<std::vector<FieldElement>> a, b;
  std::vector<FieldTerm> terms;
  std::vector<std::int64_t> lengths;
  // Long enough for several folds of 32 products.
  for (int t = *rc::gen::inRange(1, 3); t > 0; --t)
    lengths.push_back(*rc::gen::inRange<std::int64_t>(1, 100));
  for (const std::int64_t K : lengths) {
    a.emplace_back(), b.emplace_back();
    for (std::int64_t i = 0; i < M * K; ++i) a.back().push_back(any_number(setting));
    for (std::int64_t i = 0; i < K * N; ++i) b.back().push_back(any_number(setting));
  }
  for (std::size_t t = 0; t < lengths.size(); ++t)
    terms.push_back({a[t].data(), b[t].data(), lengths[t]});
  std::vector<FieldElement> c(static_cast<std::size_t>(M * N));
  field_contract(field, M, N, terms, c.data());
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      Number sum = math.integer(0);
      for (std::size_t t = 0; t < lengths.size(); ++t)
        for (std::int64_t k = 0; k < lengths[t]; ++k)
          sum =
              math.add(sum, math.multiply(same(a[t][static_cast<std::size_t>(m * lengths[t] + k)]),
                                          same(b[t][static_cast<std::size_t>(k * N + n)])));
      RC_ASSERT(same(c[static_cast<std::size_t>(m * N + n)]) == sum);
    }
}

TEST(FieldNumbers, WhatIsNoNumberStaysNone) {
  const Field field(FieldSetting{.seed = 1});
  const FieldElement none = Field::unwritten();
  const FieldElement one = field.integer(1);
  std::vector<FieldElement> results{field.add(none, one),
                                    field.add(one, none),
                                    field.subtract(none, one),
                                    field.subtract(one, none),
                                    field.multiply(none, one),
                                    field.multiply(one, none),
                                    field.inverse(none),
                                    field.apply(field.function("swish"), none),
                                    field.apply_from_zero(field.function("swish"), none)};
  // In a dot product wherever it stands, also times 0.
  for (std::size_t at = 0; at < 70; ++at) {
    std::vector<FieldElement> a(70, one), zeros(70, FieldElement{});
    a[at] = none;
    results.push_back(field.dot(a.data(), 1, zeros.data(), 1, 70));
    results.push_back(field.dot(zeros.data(), 1, a.data(), 1, 70));
  }
  for (const FieldElement& v : results) EXPECT_FALSE(field.is_number(v)) << to_string(v);
  // Neither is p itself, in any lane.
  for (std::size_t lane = 0; lane < 3; ++lane) {
    FieldElement v{};
    v.lane[lane] = field.p();
    EXPECT_FALSE(field.is_number(v));
    EXPECT_FALSE(field.is_number(field.add(v, one)));
  }
}

TEST(FieldNumbers, AZeroLaneHasNoInverse) {
  const Field field(FieldSetting{.seed = 1});
  for (std::size_t lane = 0; lane < 3; ++lane) {
    FieldElement v = field.integer(5);
    v.lane[lane] = 0;
    try {
      field.inverse(v);
      ADD_FAILURE() << "lane " << lane;
    } catch (const Error& error) {
      EXPECT_EQ(error.label(), "field_zero");
      EXPECT_NE(std::string(error.what()).find("lane " + std::to_string(lane)), std::string::npos);
    }
  }
  // A lane that is not in use is always 0.
  EXPECT_NO_THROW(Field(FieldSetting{.lanes = 2}).inverse({{5, 5, 0}}));
}

TEST(FieldNumbers, FunctionsThatKeepZeroKeepIt) {
  const Field field(FieldSetting{.seed = 1});
  const FieldFunction& f = field.function("swish");
  EXPECT_EQ(field.apply_from_zero(f, FieldElement{}), FieldElement{});
  EXPECT_NE(field.apply(f, FieldElement{}), FieldElement{});
  for (std::size_t lane = 0; lane < 3; ++lane) {
    FieldElement v{};
    v.lane[lane] = 1;
    EXPECT_EQ(field.apply_from_zero(f, v), field.apply(f, v)) << lane;
  }
}

TEST(FieldNumbers, RefuseWhatIsNoField) {
  for (const auto& [bits, lanes] : {std::pair{60, 3}, {11, 3}, {62, 3}, {0, 1}, {61, 0}, {61, 4}})
    EXPECT_THROW(Field(FieldSetting{.bits = bits, .lanes = lanes}), Error) << bits << " " << lanes;
}

}  // namespace
}  // namespace shardproof
