// The exact regime against MPFR, whose 2200 bits hold every sum of products of f32: on kind and on
// hostile data, on one chip and on many. Plain f64 sums must be seen to fail on the same data, and
// every check to catch a fault.
#include <gtest/gtest.h>
#include <mpfr.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/collectives/moves.h"
#include "engine/collectives/transfer.h"
#include "engine/numeric/contract.h"
#include "engine/numeric/detail/rounding_test.h"
#include "engine/numeric/exact_sum.h"
#include "engine/ops/einsum.h"
#include "tests/bits.h"
#include "tests/engine/hostile_terms.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/run_program.h"
#include "weights/base/isa.h"

namespace shardproof {

namespace {

using Kind = HostileTerms::Kind;

/// An exact sum of products.
class Mpfr {
 public:
  Mpfr() {
    mpfr_init2(sum_, 2200);
    mpfr_init2(product_, 2200);
    mpfr_set_zero(sum_, +1);
  }
  ~Mpfr() {
    mpfr_clear(sum_);
    mpfr_clear(product_);
  }
  Mpfr(const Mpfr&) = delete;
  Mpfr& operator=(const Mpfr&) = delete;

  void add(float a, float b) {
    mpfr_set_d(product_, static_cast<double>(a), MPFR_RNDN);
    mpfr_mul_d(product_, product_, static_cast<double>(b), MPFR_RNDN);
    mpfr_add(sum_, sum_, product_, MPFR_RNDN);
  }
  /// RN64; an exact zero is +0.
  double rounded64() const { return mpfr_zero_p(sum_) != 0 ? 0.0 : mpfr_get_d(sum_, MPFR_RNDN); }
  float rounded() const { return static_cast<float>(rounded64()); }
  /// Whether |value - sum| <= bound, exactly.
  bool within(double value, double bound) {
    mpfr_set_d(product_, value, MPFR_RNDN);
    mpfr_sub(product_, product_, sum_, MPFR_RNDN);
    mpfr_abs(product_, product_, MPFR_RNDN);
    return mpfr_cmp_d(product_, bound) <= 0;
  }

 private:
  mpfr_t sum_, product_;
};

/// Element (i, j) of the product; `keep` is how many of its K terms count.
void add_element(Mpfr& sum, const HostileMatrices& m, std::int64_t i, std::int64_t j,
                 std::int64_t keep) {
  for (std::int64_t k = 0; k < keep; ++k)
    sum.add(m.a[static_cast<std::size_t>(i * m.K + k)], m.b[static_cast<std::size_t>(k * m.N + j)]);
}

std::vector<float> by_mpfr(const HostileMatrices& m) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < m.M; ++i)
    for (std::int64_t j = 0; j < m.N; ++j) {
      Mpfr sum;
      add_element(sum, m, i, j, m.K);
      out.push_back(sum.rounded());
    }
  return out;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// all_reduce below execute(), which refuses the infinities that hostile data rounds to.
Sharded all_reduced(const Sharded& t, const Axes& axes) {
  Threads one(1);
  const Layout layout = t.layout().with_partial(t.layout().partial().without(axes));
  return reduce(t, all_reduce_moves(t.torus(), t.local(), axes), layout, t.shape(), one);
}

class ExactArithmetic : public ::testing::TestWithParam<Kind> {
 protected:
  static constexpr int kTrials = 600;
  HostileTerms draw_{20};
  DotTerms terms() { return draw_.draw(GetParam(), draw_.within(1, 120)); }
};

TEST_P(ExactArithmetic, ADotProductIsCorrectlyRounded) {
  int plain_wrong = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const DotTerms t = terms();
    const auto n = static_cast<std::int64_t>(t.x.size());
    Mpfr expected;
    ExactSum sum;
    double plain = 0;
    std::vector<float> apart(2 * t.x.size()), thrice(3 * t.y.size());
    for (std::size_t k = 0; k < t.x.size(); ++k) {
      expected.add(t.x[k], t.y[k]);
      sum.add_product(t.x[k], t.y[k]);
      plain += static_cast<double>(t.x[k]) * static_cast<double>(t.y[k]);
      apart[2 * k] = t.x[k];
      thrice[3 * k] = t.y[k];
    }
    ASSERT_EQ(bits(sum.rounded64()), bits(expected.rounded64())) << "trial " << trial;
    ASSERT_EQ(bits(sum.rounded()), bits(expected.rounded())) << "trial " << trial;
    ASSERT_EQ(bits(exact_dot(t.x.data(), 1, t.y.data(), 1, n)), bits(expected.rounded()))
        << "trial " << trial;
    ASSERT_EQ(bits(exact_dot(apart.data(), 2, thrice.data(), 3, n)), bits(expected.rounded()))
        << "trial " << trial;
    // In two places it is the same sum.
    const auto cut = n / 3;
    const Pairs parts[] = {{apart.data(), 2, thrice.data(), 3, cut},
                           {t.x.data() + cut, 1, t.y.data() + cut, 1, n - cut}};
    ASSERT_EQ(bits(exact_dot(parts)), bits(expected.rounded())) << "trial " << trial;
    plain_wrong += bits(static_cast<float>(plain)) != bits(expected.rounded()) ? 1 : 0;
  }
  RecordProperty("plain_f64_wrong", plain_wrong);
  if (GetParam() == Kind::cancelling || GetParam() == Kind::ties) {
    EXPECT_GT(plain_wrong, 0) << "the data is too kind to tell";
  }
}

TEST_P(ExactArithmetic, DotProductsOfManyColumnsAreCorrectlyRounded) {
  for (int trial = 0; trial < kTrials / 10; ++trial) {
    const DotTerms t = terms();  // the kind's own is one column, the others' factors are any
    const std::size_t n = t.x.size();
    const auto N = static_cast<std::size_t>(draw_.within(1, 37));
    const auto own = static_cast<std::size_t>(draw_.within(0, static_cast<int>(N) - 1));
    std::vector<Mpfr> expected(N);
    std::vector<float> rows(n * (N + 1)), columns((n + 1) * N);
    for (std::size_t c = 0; c < N; ++c) {
      std::vector<float> y = c == own ? t.y : terms().y;
      y.resize(n);
      for (std::size_t k = 0; k < n; ++k) {
        expected[c].add(t.x[k], y[k]);
        rows[k * (N + 1) + c] = columns[c * (n + 1) + k] = y[k];
      }
    }
    const auto length = static_cast<std::int64_t>(n), width = static_cast<std::int64_t>(N);
    const auto parts_of = [&](const std::vector<float>& b, std::int64_t stride) {
      const std::int64_t cut = length / 3;
      return std::vector<Pairs>{
          {t.x.data(), 1, b.data(), stride, cut},
          {t.x.data() + cut, 1, b.data() + cut * stride, stride, length - cut}};
    };
    std::vector<float> side_by_side(N), apart(N);
    exact_dots(parts_of(rows, width + 1), width, 1, side_by_side.data());
    exact_dots(parts_of(columns, 1), width, length + 1, apart.data());
    for (std::size_t c = 0; c < N; ++c) {
      ASSERT_EQ(bits(side_by_side[c]), bits(expected[c].rounded())) << trial << ", column " << c;
      ASSERT_EQ(bits(apart[c]), bits(expected[c].rounded())) << trial << ", column " << c;
    }
  }
}

TEST_P(ExactArithmetic, AProductIsCorrectlyRoundedOnOneChipAndOnMany) {
  Threads one(1);
  const EinsumSpec spec = EinsumSpec::parse("BF,FE->BE");
  for (int trial = 0; trial < kTrials / 4; ++trial) {
    const Torus torus(draw_.within(1, 3), draw_.within(1, 3), draw_.within(1, 3));
    const HostileMatrices m(draw_, terms(), draw_.within(1, 6), draw_.within(1, 20), torus.chips());
    const std::vector<float> expected = by_mpfr(m);
    const Tensor a = tensor_of({m.M, m.K}, m.a);
    const Tensor b = tensor_of({m.K, m.N}, m.b);

    const Torus single;
    const Layout be = Layout::parse("BE");
    const Sharded whole = einsum(spec,
                                 {{shared(shard(a, Layout::parse("BF"), single)),
                                   shared(shard(b, Layout::parse("FE"), single))}},
                                 be, {m.M, m.N}, one);
    ASSERT_TRUE(same(whole.f32()[0], expected)) << "one chip, trial " << trial;

    // F over all three axes, summed axis by axis in a random order.
    Sharded sum =
        run_op("einsum(BF,FE->BE; a, b)", {shared(shard(a, Layout::parse("BF_zxy"), torus)),
                                           shared(shard(b, Layout::parse("F_zxyE"), torus))});
    std::string axes = "xyz";
    for (std::size_t i = 2; i > 0; --i)
      std::swap(axes[i], axes[static_cast<std::size_t>(draw_.within(0, static_cast<int>(i)))]);
    const auto first = static_cast<std::size_t>(draw_.within(1, 3));
    sum = all_reduced(sum, Axes::parse(axes.substr(0, first)));
    for (std::size_t i = first; i < 3; ++i) sum = all_reduced(sum, Axes::parse(axes.substr(i, 1)));
    for (const auto& chip : sum.f32())
      ASSERT_TRUE(same(chip, expected)) << "torus " << torus.to_string() << ", trial " << trial;
  }
}

TEST_P(ExactArithmetic, BoundsHoldAndCatchADroppedTerm) {
  int inexact = 0, elements = 0, dropped_seen = 0;
  for (int trial = 0; trial < kTrials / 4; ++trial) {
    const HostileMatrices m(draw_, terms(), draw_.within(1, 6), draw_.within(1, 20));
    const Products c = contract(m.M, m.N, {{.a = m.a.data(), .b = m.b.data(), .K = m.K}});
    for (std::int64_t i = 0; i < m.M; ++i)
      for (std::int64_t j = 0; j < m.N; ++j) {
        const auto at = static_cast<std::size_t>(i * m.N + j);
        const double bound = c.bounds.empty() ? 0.0 : static_cast<double>(c.bounds[at]);
        Mpfr exact, dropped;
        add_element(exact, m, i, j, m.K);
        ASSERT_TRUE(exact.within(c.values[at], bound)) << "trial " << trial;
        inexact += exact.within(c.values[at], 0.0) ? 0 : 1;
        add_element(dropped, m, i, j, m.K - 1);
        dropped_seen += dropped.within(c.values[at], bound) ? 0 : 1;
        ++elements;
      }
  }
  RecordProperty("inexact", inexact);
  EXPECT_GT(inexact, 0) << "a bound of zero would have done";
  // Of data that spreads widely the last term is rarely above the bound.
  EXPECT_GT(dropped_seen, GetParam() == Kind::normal ? elements / 4 : 0)
      << "a kernel that loses a term goes unseen";
}

TEST_P(ExactArithmetic, BoundsOfPartialSumsHold) {
  for (int trial = 0; trial < kTrials / 4; ++trial) {
    const Torus torus(draw_.within(1, 3), draw_.within(1, 3), draw_.within(1, 2));
    const HostileMatrices m(draw_, terms(), 2, 3, torus.chips());
    Sharded sum =
        run_op("einsum(BF,FE->BE; a, b)",
               {shared(shard(tensor_of({m.M, m.K}, m.a), Layout::parse("BF_zxy"), torus)),
                shared(shard(tensor_of({m.K, m.N}, m.b), Layout::parse("F_zxyE"), torus))});
    for (const char* step : {"all_reduce(t, x)", "all_reduce(t, y)"}) {
      sum = run_op(step, sum);
      const Partial& partial = sum.partial();
      for (int chip = 0; chip < torus.chips(); ++chip)
        for (std::int64_t i = 0; i < m.M * m.N; ++i) {
          // The blocks of F that the chip's sum stands for: those of the group so far.
          const Axes axes = Axes::parse(sum.layout().partial().has(Axis::y) ? "x" : "xy");
          Mpfr exact;
          const std::int64_t width = m.K / torus.chips();
          for (int member : torus.group(chip, axes)) {
            const std::int64_t start = torus.block(member, Axes::parse("zxy")) * width;
            for (std::int64_t k = start; k < start + width; ++k)
              exact.add(m.a[static_cast<std::size_t>(i / m.N * m.K + k)],
                        m.b[static_cast<std::size_t>(k * m.N + i % m.N)]);
          }
          ASSERT_TRUE(exact.within(
              partial.values[static_cast<std::size_t>(chip)][static_cast<std::size_t>(i)],
              partial.bound(chip, i)))
              << step << ", trial " << trial;
        }
    }
  }
}

TEST_P(ExactArithmetic, AllKernelsRoundAlike) {
  for (int trial = 0; trial < kTrials / 4; ++trial) {
    // Odd extents, so that whole tiles, single rows and the rest of a row all occur.
    const HostileMatrices m(draw_, terms(), draw_.within(1, 9), draw_.within(1, 37));
    const std::vector<float> expected = by_mpfr(m);
    for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
      if (!has_isa(isa)) continue;
      const ForcedIsa forced(isa);
      const Products c = contract(m.M, m.N, {{.a = m.a.data(), .b = m.b.data(), .K = m.K}});
      for (std::size_t i = 0; i < c.values.size(); ++i)
        if (const auto decided =
                decide(c.values[i], c.bounds.empty() ? 0.0 : static_cast<double>(c.bounds[i]))) {
          ASSERT_EQ(bits(*decided), bits(expected[i])) << to_string(isa) << ", trial " << trial;
        }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ExactArithmetic, ::testing::ValuesIn(HostileTerms::kKinds),
                         [](const auto& given) { return HostileTerms::name(given.param); });

/// A trial of threads: a product with batch letters, scattered in two steps, on 12 chips.
std::vector<float> product_with(int threads, const HostileMatrices& m) {
  const auto out = run_program(
      R"(
    input x : B_zLE_xy is in
    input w : E_xyF is weight w_gate
    h : B_zLF partialsum-xy = einsum(BLE,EF->BLF; x, w) is raw gate
    hy : B_zLF_y partialsum-x = reduce_scatter(h, F, y) is raw gate
    hr : B_zLF_yx = reduce_scatter(hy, F, x) is raw gate
    output hr
  )",
      Torus(2, 3, 2), {{"x", tensor_of({m.M, 1, m.K}, m.a)}, {"w", tensor_of({m.K, m.N}, m.b)}},
      threads);
  return assemble(*out.at("hr")).data;
}

TEST(ExactThreads, DoNotChangeABit) {
  HostileTerms draw(7);
  for (Kind kind : {Kind::normal, Kind::cancelling, Kind::ties, Kind::denormal}) {
    const HostileMatrices m(draw, draw.draw(kind, 60), 4, 12, 6);
    const std::vector<float> expected = by_mpfr(m);
    for (int threads : {1, 2, 7})
      EXPECT_TRUE(same(product_with(threads, m), expected))
          << HostileTerms::name(kind) << " with " << threads << " threads";
  }
}

TEST(InexactFlag, SmallIntegersNeedNoBounds) {
  HostileTerms draw(3);
  for (int trial = 0; trial < 100; ++trial) {
    const std::int64_t M = draw.within(1, 7), N = draw.within(1, 37), K = draw.within(2, 50);
    std::vector<float> a(static_cast<std::size_t>(M * K)), b(static_cast<std::size_t>(K * N));
    for (float& v : a) v = static_cast<float>(draw.within(-1000, 1000));
    for (float& v : b) v = static_cast<float>(draw.within(-1000, 1000));
    EXPECT_TRUE(
        contract(M, N,
                 {{.a = a.data(), .b = b.data(), .K = K}, {.a = a.data(), .b = b.data(), .K = K}})
            .bounds.empty());
    // One speck that does not fit a sum's 53 bits raises the flag, wherever it stands.
    std::fill(a.begin(), a.end(), 1.0F);
    std::fill(b.begin(), b.end(), 1.0F);
    a[static_cast<std::size_t>(draw.within(0, static_cast<int>(M * K) - 1))] = 0x1p-60F;
    const Products inexact = contract(
        M, N, {{.a = a.data(), .b = b.data(), .K = K}, {.a = a.data(), .b = b.data(), .K = K}});
    EXPECT_EQ(inexact.bounds.size(), inexact.values.size());
  }
}

TEST(InexactFlag, IsClearedOfWhatWasBefore) {
  const float one = 1.0F;
  volatile double third = 3.0;
  third = 1.0 / third;  // raises the flag
  EXPECT_TRUE(contract(1, 1, {{.a = &one, .b = &one, .K = 1}}).bounds.empty());
}

TEST(InexactFlag, BatchesWithAndWithoutBoundsStandSideBySide) {
  // Squares of rows (1, 2) and (1, 2^-40), in either order: the second kind is inexact.
  for (bool inexact_first : {true, false}) {
    const float first = inexact_first ? 0x1p-40F : 2;
    const float second = inexact_first ? 2 : 0x1p-40F;
    const auto x = shared(
        shard(tensor_of({2, 1, 2}, {1, first, 1, second}), Layout::parse("BLE"), Torus(1, 1, 1)));
    const auto y = shared(shard(tensor_of({2, 1, 4}, {1, first, 1, first, 1, second, 1, second}),
                                Layout::parse("BLE_z"), Torus(1, 1, 2)));
    const std::size_t inexact = inexact_first ? 0 : 1;
    const std::vector<float> whole = run_op("einsum(BLE,BLE->BL; x, x)", {x, x}).f32()[0];
    EXPECT_EQ(whole[inexact], 1);
    EXPECT_EQ(whole[1 - inexact], 5);
    const Sharded partial = run_op("einsum(BLE,BLE->BL; y, y)", {y, y});
    for (const auto& bounds : partial.partial().bounds) {
      ASSERT_EQ(bounds.size(), 2U);
      EXPECT_GT(bounds[inexact], 0);
      EXPECT_EQ(bounds[1 - inexact], 0);
    }
  }
}

}  // namespace
}  // namespace shardproof
