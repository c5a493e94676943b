// Sums, products and inverses are those of F_p, lane by lane, for every p and number of lanes.
#include "oracle/field/detail/arithmetic.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "tests/weights/expect_error.h"

namespace shardproof::oracle::field {
namespace {

constexpr std::array kBits{61, 31, 19, 17, 13, 7, 5, 3};

FieldSetting draw_setting() {
  FieldSetting setting;
  setting.bits = *rc::gen::elementOf(std::vector<int>(kBits.begin(), kBits.end()));
  setting.lanes = *rc::gen::element(1, 2, 3);
  return setting;
}

/// Any number, often with lanes at the ends of the range.
Number draw_number(const Arithmetic& math) {
  Number n;
  for (std::size_t j = 0; j < math.lanes(); ++j) {
    const auto any = *rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>());
    const int kind = *rc::gen::element(0, 1, 2, 3, 3, 3);
    n.lane[j] = kind == 0 ? 0 : kind == 1 ? 1 : kind == 2 ? math.p() - 1 : any % math.p();
  }
  return n;
}

bool is_number(const Arithmetic& math, const Number& n) {
  for (std::size_t j = 0; j < 3; ++j)
    if (j < math.lanes() ? n.lane[j] >= math.p() : n.lane[j] != 0) return false;
  return true;
}

RC_GTEST_PROP(FieldArithmetic, IsThatOfAField, ()) {
  const Arithmetic math(draw_setting());
  const Number a = draw_number(math), b = draw_number(math), c = draw_number(math);
  const Number zero = math.integer(0), one = math.integer(1);
  RC_ASSERT(math.add(a, b) == math.add(b, a));
  RC_ASSERT(math.multiply(a, b) == math.multiply(b, a));
  RC_ASSERT(math.add(math.add(a, b), c) == math.add(a, math.add(b, c)));
  RC_ASSERT(math.multiply(math.multiply(a, b), c) == math.multiply(a, math.multiply(b, c)));
  RC_ASSERT(math.multiply(a, math.add(b, c)) == math.add(math.multiply(a, b), math.multiply(a, c)));
  RC_ASSERT(math.add(a, zero) == a);
  RC_ASSERT(math.multiply(a, one) == a);
  RC_ASSERT(math.add(math.subtract(a, b), b) == a);
  for (const Number& n : {math.add(a, b), math.multiply(a, b), math.subtract(a, b), one})
    RC_ASSERT(is_number(math, n));
  if (!math.zero_lane(a)) {
    RC_ASSERT(math.multiply(a, math.inverse(a)) == one);
    RC_ASSERT(is_number(math, math.inverse(a)));
  }
}

RC_GTEST_PROP(FieldArithmetic, ADotIsASumOfProducts, ()) {
  const Arithmetic math(draw_setting());
  const auto n = *rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, 100));
  std::vector<Number> x(n), y(n);
  Number sum;
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = draw_number(math);
    y[i] = draw_number(math);
    sum = math.add(sum, math.multiply(x[i], y[i]));
  }
  RC_ASSERT(math.dot(x.data(), y.data(), n) == sum);
}

TEST(FieldArithmetic, ALongDotOfTheLargestNumbersDoesNotOverflow) {
  for (const int bits : kBits) {
    FieldSetting setting;
    setting.bits = bits;
    const Arithmetic math(setting);
    const Number largest = math.integer(-1);  // its square is 1
    for (const std::size_t n : {31U, 32U, 33U, 64U, 5000U}) {
      const std::vector<Number> x(n, largest);
      EXPECT_EQ(math.dot(x.data(), x.data(), n), math.integer(static_cast<std::int64_t>(n)));
    }
  }
}

TEST(FieldArithmetic, OfSmallPrimesIsThatOfIntegers) {
  for (const int bits : {3, 5, 7}) {
    FieldSetting setting;
    setting.bits = bits;
    setting.lanes = 2;
    const Arithmetic math(setting);
    const std::int64_t p = (1 << bits) - 1;
    for (std::int64_t i = -p; i < 2 * p; ++i) {
      const auto rest = static_cast<std::uint64_t>(((i % p) + p) % p);
      EXPECT_EQ(math.integer(i), (Number{{rest, rest, 0}}));
      for (std::int64_t j = 0; j < p; ++j) {
        EXPECT_EQ(math.add(math.integer(i), math.integer(j)), math.integer(i + j));
        EXPECT_EQ(math.subtract(math.integer(i), math.integer(j)), math.integer(i - j));
        EXPECT_EQ(math.multiply(math.integer(i), math.integer(j)), math.integer(i * j));
      }
    }
  }
}

TEST(FieldArithmetic, NamesTheFirstLaneInUseThatIsZero) {
  FieldSetting setting;
  setting.lanes = 2;
  const Arithmetic math(setting);
  EXPECT_FALSE(math.zero_lane({{1, 1, 0}}).has_value());
  EXPECT_EQ(math.zero_lane({{1, 0, 0}}), std::size_t{1});
  EXPECT_EQ(math.zero_lane({{0, 0, 0}}), std::size_t{0});
}

TEST(FieldArithmetic, RefusesWhatIsNoField) {
  for (const int bits : {-3, 0, 1, 2, 4, 11, 60, 62, 64, 125})
    EXPECT_EQ(label_of([&] { Arithmetic({.bits = bits}); }), "field_setting") << bits;
  for (const int lanes : {-1, 0, 4})
    EXPECT_EQ(label_of([&] { Arithmetic({.lanes = lanes}); }), "field_setting") << lanes;
}

}  // namespace
}  // namespace shardproof::oracle::field
