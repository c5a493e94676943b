// The scalar functions: bf16 over every upper half, spot values, and libm against MPFR.
#include "oracle/numeric/detail/functions.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace shardproof::oracle {
namespace {

float from_bits(std::uint32_t u) { return std::bit_cast<float>(u); }
std::uint32_t bits_of(float v) { return std::bit_cast<std::uint32_t>(v); }

TEST(Bf16, RoundsToNearestEvenFromEveryUpperHalf) {
  for (std::uint32_t upper = 0; upper <= 0xffff; ++upper) {
    for (std::uint32_t lower : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const float v = from_bits(upper << 16 | lower);
      if (!std::isfinite(v)) continue;
      const bool up = lower > 0x8000 || (lower == 0x8000 && upper % 2 == 1);
      ASSERT_EQ(bits_of(bf16(v)), (upper + (up ? 1 : 0)) << 16) << std::hexfloat << v;
    }
  }
}

TEST(Bf16, IsTheNearestMultipleOfItsLastPlace) {  // by scaling, in another way than by adding
  const auto scaled = [](float v) {
    if (v == 0 || !std::isfinite(v)) return v;
    int e = 0;
    std::frexp(v, &e);
    const int last = std::max(e - 8, -133);
    const double multiple = std::nearbyint(std::ldexp(static_cast<double>(v), -last));
    return static_cast<float>(std::ldexp(multiple, last));
  };
  for (std::uint32_t u = 0; u < 0xffff0000U; u += 4099)  // prime: all lower halves are met
    ASSERT_EQ(bits_of(bf16(from_bits(u))), bits_of(scaled(from_bits(u)))) << std::hex << u;
  for (const std::uint32_t same : {0x7f800000U, 0xff800000U, 0x7fc00000U, 0xffc12345U})
    EXPECT_EQ(bits_of(bf16(from_bits(same))), same) << std::hex << same;
}

TEST(Bf16, SpotValues) {
  EXPECT_EQ(bf16(1.0F + 0x1p-8F), 1.0F);            // a tie, to even
  EXPECT_EQ(bf16(1.0F + 0x3p-8F), 1.0F + 0x1p-6F);  // a tie, to even
  EXPECT_EQ(bf16(-3.14159274F), -3.140625F);
  EXPECT_EQ(bits_of(bf16(-0.0F)), bits_of(-0.0F));
  EXPECT_EQ(bf16(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
  EXPECT_EQ(bf16(0x1p-134F), 0.0F);  // half the smallest: a tie, to even
  EXPECT_EQ(bf16(0x1.8p-134F), 0x1p-133F);
}

TEST(Functions, SpotValues) {
  for (int n = -149; n <= 127; ++n)
    EXPECT_EQ(exp2_of(static_cast<float>(n)), std::ldexp(1.0F, n)) << n;
  EXPECT_EQ(bits_of(exp2_of(-150.5F)), 0U);
  EXPECT_EQ(swish2(0.5F), 0.731058579F);
  EXPECT_EQ(bits_of(swish2(-500.0F)), bits_of(-0.0F));
  EXPECT_EQ(bits_of(swish(0.0F)), 0U);
  EXPECT_EQ(swish(1.0F), 0.731058579F);
  EXPECT_EQ(swish(-1.0F), -0.268941421F);
  EXPECT_EQ(bits_of(swish(-1000.0F)), bits_of(-0.0F));
  EXPECT_EQ(gelu(1.0F), 0.841191991F);
  EXPECT_EQ(gelu_erf(1.0F), 0.841344746F);
  EXPECT_EQ(gelu_erf(-1.0F), -0.158655254F);
  // Where 1 + tanh and 1 + erf have cancelled to nothing.
  EXPECT_EQ(gelu_erf(-9.0F), -1.01572957e-18F);
  EXPECT_LT(gelu(-9.0F), 0.0F);
}

/// An f64 function of an f64, correctly rounded by MPFR.
class Correct {
 public:
  Correct() { mpfr_init2(x_, 53); }
  ~Correct() { mpfr_clear(x_); }
  Correct(const Correct&) = delete;
  Correct& operator=(const Correct&) = delete;

  double exp(double x) { return call(mpfr_exp, x); }
  double exp2(double x) { return call(mpfr_exp2, x); }
  double erfc(double x) { return call(mpfr_erfc, x); }

 private:
  double call(int (*f)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t), double x) {
    mpfr_set_d(x_, x, MPFR_RNDN);
    f(x_, x_, MPFR_RNDN);
    return mpfr_get_d(x_, MPFR_RNDN);
  }
  mpfr_t x_;
};

/// The functions again, on correctly rounded exp and erfc.
float true_exp(Correct& c, float x) { return static_cast<float>(c.exp(static_cast<double>(x))); }
float true_exp2(Correct& c, float x) { return static_cast<float>(c.exp2(static_cast<double>(x))); }
float true_swish2(Correct& c, float x) {
  const double g = x;
  return static_cast<float>(2 * g / (1 + c.exp(-2 * g)));
}
float true_swish(Correct& c, float x) {
  const double g = x;
  return static_cast<float>(g / (1 + c.exp(-g)));
}
float true_gelu(Correct& c, float x) {
  const double g = x;
  const double z = 0.7978845608028654 * (g + 0.044715 * g * g * g);
  return static_cast<float>(g / (1 + c.exp(-2 * z)));
}
float true_gelu_erf(Correct& c, float x) {
  const double g = x;
  return static_cast<float>(0.5 * g * c.erfc(-g / std::sqrt(2.0)));
}

struct Function {
  const char* name;
  float (*ours)(float);
  float (*truth)(Correct&, float);
  int random_arguments;
  /// Every f32 argument (of at least 2^-100) for which an f64 exp or erfc that is wrong by 2^-50
  /// of itself (4 to 8 ulp) can give another f32: found by trying all 2^32.
  std::vector<std::uint32_t> hard;
};

const Function kFunctions[] = {
    {.name = "exp",
     .ours = exp_of,
     .truth = true_exp,
     .random_arguments = 1200000,
     .hard = {0x377eff81, 0x39c6be5b, 0x4001b249, 0x40315b33, 0xb3000000, 0xbae0e25c, 0xbbf0edf1,
              0xc16912cd}},
    {.name = "swish",
     .ours = swish,
     .truth = true_swish,
     .random_arguments = 1200000,
     .hard = {0x34000000, 0x35400000, 0x36200000, 0x36600000, 0x37100000, 0x37300000, 0x37500000,
              0x37700000, 0x38126c8e, 0xb3800000, 0xb5400000, 0xb6200000, 0xb6600000, 0xb7100000,
              0xb7300000, 0xb7500000, 0xb7700000, 0xb8126c8e}},
    {.name = "exp2",
     .ours = exp2_of,
     .truth = true_exp2,
     .random_arguments = 1200000,
     .hard = {0x33b8aa3b, 0x36879cf7, 0x3a07857c, 0x3b429d37, 0x3c02a9ad, 0xb466d4cb, 0xb52d1f9a,
              0xb8d3d026, 0xbaec2b40, 0xbcf3a937, 0xbe1f29de, 0xc3160000}},
    {.name = "swish2",  // swish of the double, which is exact
     .ours = swish2,
     .truth = true_swish2,
     .random_arguments = 1200000,
     .hard = {0x33800000, 0x34c00000, 0x35a00000, 0x35e00000, 0x36900000, 0x36b00000, 0x36d00000,
              0x36f00000, 0x37926c8e, 0xb3000000, 0xb4c00000, 0xb5a00000, 0xb5e00000, 0xb6900000,
              0xb6b00000, 0xb6d00000, 0xb6f00000, 0xb7926c8e}},
    {.name = "gelu",
     .ours = gelu,
     .truth = true_gelu,
     .random_arguments = 200000,
     .hard = {0x37b0a46f, 0xb34aa765, 0xb7b0a46f, 0xc0773385}},
    {.name = "gelu_erf",
     .ours = gelu_erf,
     .truth = true_gelu_erf,
     .random_arguments = 20000,
     .hard = {0x334aa765, 0x37b0a46f, 0x37f5c377, 0x38028e89, 0x38ca1be2, 0x3e493cc6, 0x3eada244,
              0xb34aa765, 0xb7b0a46f, 0xb7f5c377, 0xb8028e89, 0xb8ca1be2, 0xbe493cc6, 0xbe8e7062}},
};

class LibmAgainstMpfr : public ::testing::TestWithParam<Function> {};

TEST_P(LibmAgainstMpfr, AtItsHardCasesAndTheirNeighbours) {
  const Function& f = GetParam();
  Correct correct;
  for (std::uint32_t hard : f.hard)
    for (std::uint32_t u = hard - 50; u != hard + 51; ++u)
      ASSERT_EQ(bits_of(f.ours(from_bits(u))), bits_of(f.truth(correct, from_bits(u))))
          << std::hex << u;
}

TEST_P(LibmAgainstMpfr, AtRandomArguments) {
  const Function& f = GetParam();
  Correct correct;
  std::mt19937_64 random(7);
  for (int trial = 0; trial < f.random_arguments; ++trial) {
    // Any sign and fraction, |x| from 2^-30 to 128: beyond, the functions are 0, 1, x, x/2 or inf.
    const std::uint64_t r = random();
    const std::uint32_t exponent = 97 + static_cast<std::uint32_t>((r >> 32) % 37);
    const float x = from_bits(static_cast<std::uint32_t>(r & 0x807fffff) | exponent << 23);
    ASSERT_EQ(bits_of(f.ours(x)), bits_of(f.truth(correct, x))) << std::hexfloat << x;
  }
}

TEST(LibmNegativeControl, TheTextbookGeluWouldFail) {  // the negative control
  Correct correct;
  int different = 0;
  for (float x = -9; x < -7; x += 0x1p-8F) {
    const double g = x;
    const double z = 0.7978845608028654 * (g + 0.044715 * g * g * g);
    const float textbook = static_cast<float>(0.5 * g * (1 + std::tanh(z)));
    different += bits_of(textbook) != bits_of(true_gelu(correct, x)) ? 1 : 0;
  }
  EXPECT_GT(different, 400);  // of 512
}

INSTANTIATE_TEST_SUITE_P(, LibmAgainstMpfr, ::testing::ValuesIn(kFunctions),
                         [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace shardproof::oracle
