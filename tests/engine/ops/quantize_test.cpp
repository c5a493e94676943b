// int8 codes and scales made on the chips, held against those of the unsharded matrices.
#include "engine/ops/quantize.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/engine/random_layout.h"

namespace shardproof {
namespace {

constexpr float kTiny = std::numeric_limits<float>::denorm_min();

/// By the formulas of docs/spec.md section 2.4, of a matrix [K, N].
struct Quantized {
  std::vector<float> scales, codes;
};
Quantized by_formula(const Tensor& w, std::size_t channels) {
  Quantized made{std::vector<float>(channels), w.data};
  for (std::size_t j = 0; j < channels; ++j) {
    float absmax = 0.0F;
    for (std::size_t i = j; i < w.data.size(); i += channels)
      if (std::fabs(w.data[i]) > absmax) absmax = std::fabs(w.data[i]);
    made.scales[j] = static_cast<float>(static_cast<double>(absmax) / 127.0);
    if (made.scales[j] == 0.0F) made.scales[j] = 1.0F;
    for (std::size_t i = j; i < w.data.size(); i += channels) {
      double code = std::rint(static_cast<double>(w.data[i]) / static_cast<double>(made.scales[j]));
      if (code > 127.0) code = 127.0;
      if (code < -127.0) code = -127.0;
      made.codes[i] = static_cast<float>(static_cast<int>(code));
    }
  }
  return made;
}

std::vector<std::uint32_t> all_bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> all;
  for (float v : values) all.push_back(std::bit_cast<std::uint32_t>(v));
  return all;
}

/// Whether every chip has the block of `whole` that its layout says, bit for bit.
bool on_every_chip(const Sharded& value, const Tensor& whole) {
  const Sharded expected = shard(whole, value.layout(), value.torus());
  for (std::size_t chip = 0; chip < expected.f32().size(); ++chip)
    if (all_bits(value.f32()[chip]) != all_bits(expected.f32()[chip])) return false;
  return true;
}

/// Values whose scales and codes have every special case: zeros of both signs, ties, subnormals,
/// the largest number, columns of nothing.
Tensor draw_matrix(const Shape& shape) {
  Tensor w(shape);
  for (float& v : w.data) {
    const int n = draw_int(-254, 254);
    v = static_cast<float>(n) * 0.5F;
    if (draw_int(0, 9) == 0) v = -0.0F;
    if (draw_int(0, 19) == 0) v = static_cast<float>(n) * kTiny;
    if (draw_int(0, 39) == 0) v = std::copysign(std::numeric_limits<float>::max(), v);
  }
  return w;
}

RC_GTEST_PROP(Quantize, IsTheSameInEveryLayout, ()) {
  const Torus torus = *rc::gen::element(Torus(1, 1, 1), Torus(2, 1, 3), Torus(3, 1, 2),
                                        Torus(4, 2, 3), Torus(1, 5, 1), Torus(2, 2, 2));
  const std::vector<Axes> bins = draw_bins(4);
  const std::int64_t unit = torus.chips();
  const Tensor w = draw_matrix({unit, unit, 2 * unit});
  const Layout layout({{'H', bins[1]}, {'Q', bins[2]}, {'E', bins[3]}}, {});
  const Sharded sharded = shard(w, layout, torus);
  const auto channels = static_cast<std::size_t>(2 * unit);
  const Quantized expected = by_formula(w, channels);
  Tensor scales({2 * unit});
  scales.data = expected.scales;
  Tensor codes_of_all(w.shape);
  codes_of_all.data = expected.codes;

  const Sharded scale = scale_of_absmax(absmax(sharded, "E"));
  RC_ASSERT(scale.layout() == Layout({{'E', bins[3]}}, {}));
  RC_ASSERT(on_every_chip(scale, scales));
  RC_ASSERT(on_every_chip(codes(sharded, scale), codes_of_all));
}

// ---- by eye

/// One row a chip along x, one column: [2, 1].
Sharded column(float first, float second) {
  Tensor w({2, 1});
  w.data = {first, second};
  return shard(w, Layout::parse("E_xF"), Torus(2, 1, 1));
}
float scale_on(const Sharded& w, std::size_t chip) {
  return scale_of_absmax(absmax(w, "F")).f32()[chip][0];
}

TEST(Quantize, TheLargestIsOfAllChips) {
  // Without the max reduction chip 0 would have the scale 1/127, and 2 would be its code 127.
  const Sharded w = column(1.0F, -2.0F);
  for (std::size_t chip : {0U, 1U}) EXPECT_EQ(scale_on(w, chip), static_cast<float>(2.0 / 127.0));
  const Sharded made = codes(w, scale_of_absmax(absmax(w, "F")));
  EXPECT_EQ(made.f32()[0][0], 64.0F);  // 63.5: a tie, to even
  EXPECT_EQ(made.f32()[1][0], -127.0F);
}

TEST(Quantize, AScaleOfNothingIsOne) {
  EXPECT_EQ(scale_on(column(0.0F, -0.0F), 1), 1.0F);
  EXPECT_EQ(scale_on(column(kTiny, 0.0F), 0), 1.0F) << "absmax/127 is 0 in f32";
  EXPECT_EQ(scale_on(column(-127.0F * kTiny, 0.0F), 0), kTiny);
}

TEST(Quantize, CodesAreClipped) {
  // absmax/127 is 1.49 of the smallest f32, and rounds to one.
  const Sharded w = column(189.0F * kTiny, -189.0F * kTiny);
  EXPECT_EQ(scale_on(w, 0), kTiny);
  const Sharded made = codes(w, scale_of_absmax(absmax(w, "F")));
  EXPECT_EQ(made.f32()[0][0], 127.0F);
  EXPECT_EQ(made.f32()[1][0], -127.0F);
}

TEST(Quantize, TwoMatricesOfOneContractionHaveTheGreater) {
  const Sharded a = absmax(column(1.0F, -2.0F), "F"), b = absmax(column(-3.0F, 0.5F), "F");
  for (std::size_t chip : {0U, 1U}) EXPECT_EQ(greater(a, b).f32()[chip][0], 3.0F);
}

}  // namespace
}  // namespace shardproof
