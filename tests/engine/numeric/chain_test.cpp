// The product kernels: the f32 chain and its f64 twin give on every instruction set, for every
// shape, the bits of the three lines that define them. Faults are planted in those lines.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/numeric/contract.h"
#include "engine/numeric/detail/kernels.h"
#include "weights/base/isa.h"

namespace shardproof {
namespace {

std::vector<Isa> isas() {
  std::vector<Isa> all;
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512})
    if (has_isa(isa)) all.push_back(isa);
  return all;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), sizeof(T) * a.size()) == 0);
}

struct Matrices {
  long M, N, K;
  std::vector<float> a, b;
};

/// Full significands of different sizes: nearly every operation rounds.
std::vector<float> drawn(long n, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) {
    const auto size = -20 - static_cast<int>(random() % 10);
    x = std::ldexp(static_cast<float>(random() % (1U << 25)) - 0x1p24F, size);
  }
  return v;
}

Matrices matrices(long M, long N, long K, unsigned seed) {
  return {.M = M, .N = N, .K = K, .a = drawn(M * K, seed), .b = drawn(K * N, seed + 1)};
}
Matrices matrices(long M, long N, long K) {
  return matrices(M, N, K, *rc::gen::arbitrary<unsigned>());
}

/// Extents at and around the widths of tiles and vectors.
Matrices random_matrices() {
  const auto around = [](std::vector<long> centres) {
    return std::max(0L, *rc::gen::elementOf(centres) + *rc::gen::inRange(-1L, 2L));
  };
  const long M = std::max(1L, around({1, 4, 6, 12, 13, 25, 50, 97, 193}));
  const long N = std::max(1L, around({1, 4, 8, 16, 24, 33, 130, 257, 600}));
  const long K = around({0, 1, 2, 7, 40, 258});
  return matrices(M, N, M * N > 10000 ? std::min(K, 8L) : K);
}

using Define = float (*)(const Matrices&, long i, long j, float start);

float defined(const Matrices& m, long i, long j, float start) {
  float c = start;
  for (long k = 0; k < m.K; ++k)
    c = std::fma(m.a[static_cast<std::size_t>(i * m.K + k)],
                 m.b[static_cast<std::size_t>(k * m.N + j)], c);
  return c;
}
float unfused(const Matrices& m, long i, long j, float start) {
  volatile float c = start;
  for (long k = 0; k < m.K; ++k) {
    const volatile float product =
        m.a[static_cast<std::size_t>(i * m.K + k)] * m.b[static_cast<std::size_t>(k * m.N + j)];
    c = c + product;
  }
  return c;
}
float descending(const Matrices& m, long i, long j, float start) {
  float c = start;
  for (long k = m.K; k-- > 0;)
    c = std::fma(m.a[static_cast<std::size_t>(i * m.K + k)],
                 m.b[static_cast<std::size_t>(k * m.N + j)], c);
  return c;
}

std::vector<float> by(Define define, const Matrices& m) {
  std::vector<float> c;
  for (long i = 0; i < m.M; ++i)
    for (long j = 0; j < m.N; ++j) c.push_back(define(m, i, j, 0.0F));
  return c;
}

std::vector<float> chained(const Matrices& m) {
  std::vector<float> c(static_cast<std::size_t>(m.M * m.N), NAN);
  chain(m.M, m.N, {{.a = m.a.data(), .b = m.b.data(), .K = m.K}}, c.data());
  return c;
}

RC_GTEST_PROP(Chain, IsTheFmaChainOnEveryInstructionSet, ()) {
  const Matrices m = random_matrices();
  const std::vector<float> expected = by(defined, m);
  for (Isa isa : isas()) {
    const ForcedIsa forced(isa);
    RC_ASSERT(same(chained(m), expected));
  }
}

RC_GTEST_PROP(Chain, IsNoOtherSum, ()) {
  const Matrices m = matrices(3, 37, *rc::gen::inRange(30L, 60L));
  RC_ASSERT(!same(by(unfused, m), chained(m)));
  RC_ASSERT(!same(by(descending, m), chained(m)));
}

/// The chains of one row, its columns side by side or each by itself, in two parts of the whole.
RC_GTEST_PROP(Chain, OfARowIsThatOfItsColumns, ()) {
  const Matrices m = matrices(1, *rc::gen::inRange(1L, 40L), *rc::gen::inRange(0L, 60L));
  const std::vector<float> expected = by(defined, m);
  std::vector<float> columns(m.b.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::size_t k = i % static_cast<std::size_t>(m.K), j = i / static_cast<std::size_t>(m.K);
    columns[i] = m.b[k * static_cast<std::size_t>(m.N) + j];
  }
  const auto dots = [&](const std::vector<float>& b, long stride, long apart) {
    const long cut = m.K / 3;
    const std::vector<Pairs> parts{
        {m.a.data(), 1, b.data(), stride, cut},
        {m.a.data() + cut, 1, b.data() + cut * stride, stride, m.K - cut}};
    std::vector<float> c(static_cast<std::size_t>(m.N), NAN);
    chain_dots(parts, m.N, apart, c.data());
    return c;
  };
  RC_ASSERT(same(dots(m.b, m.N, 1), expected));
  RC_ASSERT(same(dots(columns, 1, m.K), expected));
}

/// Whatever part of C is computed, and in whatever pieces of M, N and k, and however wide the rows:
/// the same bits, and nothing beside it is touched.
RC_GTEST_PROP(Chain, PartsAreThePartsOfTheWhole, ()) {
  const Matrices m = random_matrices();
  const std::vector<float> expected = by(defined, m);
  const long i = *rc::gen::inRange(0L, m.M + 1);
  const long j = *rc::gen::inRange(0L, m.N + 1);
  const long k = *rc::gen::inRange(0L, m.K + 1);
  for (Isa isa : isas()) {
    const ForcedIsa forced(isa);
    const long ldc = m.N + 3;
    std::vector<float> c(static_cast<std::size_t>(m.M * ldc), -7.0F);
    const auto part = [&](long i0, long i1, long j0, long j1) {
      float* const at = c.data() + i0 * ldc + j0;
      const float* const a = m.a.data() + i0 * m.K;
      const float* const b = m.K == 0 ? nullptr : m.b.data() + j0;
      const auto f32 = kernels_in_use().f32;
      f32(i1 - i0, j1 - j0, k, a, m.K, b, m.N, at, ldc, true);
      f32(i1 - i0, j1 - j0, m.K - k, a + k, m.K, b + k * m.N, m.N, at, ldc, false);
    };
    part(0, i, 0, j);
    part(0, i, j, m.N);
    part(i, m.M, 0, j);
    part(i, m.M, j, m.N);
    for (long r = 0; r < m.M; ++r)
      for (long n = 0; n < ldc; ++n) {
        const float got = c[static_cast<std::size_t>(r * ldc + n)];
        const float want = n < m.N ? expected[static_cast<std::size_t>(r * m.N + n)] : -7.0F;
        RC_ASSERT(std::memcmp(&got, &want, sizeof got) == 0);
      }
  }
}

RC_GTEST_PROP(Chain, TermsConcatenate, ()) {
  const Matrices first = matrices(5, 19, *rc::gen::inRange(0L, 20L));
  const Matrices second = matrices(5, 19, *rc::gen::inRange(0L, 20L));
  std::vector<float> expected;
  for (long i = 0; i < 5; ++i)
    for (long j = 0; j < 19; ++j)
      expected.push_back(defined(second, i, j, defined(first, i, j, 0.0F)));
  std::vector<float> c(expected.size(), NAN);
  chain(5, 19,
        {{.a = first.a.data(), .b = first.b.data(), .K = first.K},
         {.a = second.a.data(), .b = second.b.data(), .K = second.K}},
        c.data());
  RC_ASSERT(same(c, expected));
}

RC_GTEST_PROP(Twin, SumsInF64AndFlagsWhatRounds, ()) {
  const bool exact = *rc::gen::arbitrary<bool>();
  Matrices m = random_matrices();
  if (exact)
    for (auto* v : {&m.a, &m.b})
      for (float& x : *v) x = std::round(std::ldexp(x, 8));
  std::vector<double> expected;
  for (long i = 0; i < m.M; ++i)
    for (long j = 0; j < m.N; ++j) {
      double c = 0.0;
      for (long k = 0; k < m.K; ++k)
        c += static_cast<double>(m.a[static_cast<std::size_t>(i * m.K + k)]) *
             static_cast<double>(m.b[static_cast<std::size_t>(k * m.N + j)]);
      expected.push_back(c);
    }
  for (Isa isa : isas()) {
    const ForcedIsa forced(isa);
    const Products c = contract(m.M, m.N, {{.a = m.a.data(), .b = m.b.data(), .K = m.K}});
    RC_ASSERT(same(std::vector<double>(c.values), expected));
    if (exact) RC_ASSERT(c.bounds.empty());
  }
}

TEST(Twin, OneRoundedSumRaisesTheFlagInEveryLane) {
  for (Isa isa : isas()) {
    const ForcedIsa forced(isa);
    for (long N = 1; N <= 40; ++N)
      for (long j = 0; j < N; ++j) {
        std::vector<float> b(static_cast<std::size_t>(2 * N), 1.0F);
        b[static_cast<std::size_t>(N + j)] = 0x1p-60F;
        const float a[2] = {1.0F, 1.0F};
        EXPECT_FALSE(contract(1, N, {{.a = a, .b = b.data(), .K = 2}}).bounds.empty());
        b[static_cast<std::size_t>(N + j)] = 0x1p-50F;
        EXPECT_TRUE(contract(1, N, {{.a = a, .b = b.data(), .K = 2}}).bounds.empty());
      }
  }
}

TEST(Chain, OfWholePanelsIsDefinedOnEveryInstructionSet) {
  // More rows than a block has, more columns than a panel, more terms than a block: nothing of this
  // is left to chance.
  const Matrices m = matrices(98, 291, 261, 5);
  std::vector<float> expected;
  for (long i = 0; i < m.M; ++i)
    for (long j = 0; j < m.N; ++j) expected.push_back(defined(m, i, j, 0.0F));
  for (Isa isa : isas()) {
    const ForcedIsa forced(isa);
    std::vector<float> c(expected.size(), NAN);
    chain(m.M, m.N, {{.a = m.a.data(), .b = m.b.data(), .K = m.K}}, c.data());
    EXPECT_TRUE(same(c, expected)) << to_string(isa);
  }
}

TEST(Isas, AreNamedAndForced) {
  std::string tested, missing;  // a log must show what was compared
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512})
    (has_isa(isa) ? tested : missing) += " " + std::string(to_string(isa));
  std::printf("instruction sets tested:%s; this machine lacks:%s\n", tested.c_str(),
              missing.empty() ? " none" : missing.c_str());
  const Isa best = isa_in_use();
  for (Isa isa : isas()) {
    const ForcedIsa forced(isa);
    EXPECT_EQ(to_string(isa_in_use()), to_string(isa));
  }
  EXPECT_EQ(isa_in_use(), best);
}

}  // namespace
}  // namespace shardproof
