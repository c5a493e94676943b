#include "tools/bench/peak.h"

#include <algorithm>
#include <cmath>

#include "engine/numeric/isa.h"
#include "tools/bench/contest.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shardproof::bench {
namespace {

// An fma needs its sum four or five cycles later, and a core may begin two in a cycle: twelve sums
// are enough, and fit in the registers of every set.
constexpr int kSums = 12;
constexpr long kSteps = 40000;

#if defined(__clang__)
#define SHARDPROOF_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SHARDPROOF_UNROLL _Pragma("GCC unroll 12")
#endif

// Arguments are types, attributes and functions, and stand in no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)

/// A function that does kSteps·kSums fma of `Vec`; the sums are used, and so computed.
#define SHARDPROOF_FMA_LOOP(name, attribute, Vec, number, splat, fma) \
  attribute void name() {                                             \
    Vec sums[kSums];                                                  \
    for (Vec & sum : sums) sum = splat(number{0});                    \
    Vec x = splat(number{0.5}), y = splat(number{0.25});              \
    asm volatile("" : : "m"(x), "m"(y) : "memory");                   \
    for (long step = 0; step < kSteps; ++step) {                      \
      SHARDPROOF_UNROLL                                               \
      for (int i = 0; i < kSums; ++i) sums[i] = fma(x, y, sums[i]);   \
    }                                                                 \
    for (Vec & sum : sums) asm volatile("" : : "m"(sum));             \
  }

// NOLINTEND(bugprone-macro-parentheses)

template <class T>
T same(T x) {
  return x;
}
#define SHARDPROOF_NOINLINE __attribute__((noinline))
SHARDPROOF_FMA_LOOP(scalar_f32, SHARDPROOF_NOINLINE, float, float, same, std::fma)
SHARDPROOF_FMA_LOOP(scalar_f64, SHARDPROOF_NOINLINE, double, double, same, std::fma)
#if defined(__x86_64__)
#define SHARDPROOF_AVX2 __attribute__((noinline, target("avx2,fma")))
#define SHARDPROOF_AVX512 __attribute__((noinline, target("avx512f")))
SHARDPROOF_FMA_LOOP(avx2_f32, SHARDPROOF_AVX2, __m256, float, _mm256_set1_ps, _mm256_fmadd_ps)
SHARDPROOF_FMA_LOOP(avx2_f64, SHARDPROOF_AVX2, __m256d, double, _mm256_set1_pd, _mm256_fmadd_pd)
SHARDPROOF_FMA_LOOP(avx512_f32, SHARDPROOF_AVX512, __m512, float, _mm512_set1_ps, _mm512_fmadd_ps)
SHARDPROOF_FMA_LOOP(avx512_f64, SHARDPROOF_AVX512, __m512d, double, _mm512_set1_pd, _mm512_fmadd_pd)
#endif

double gflops(void (*loop)(), int lanes) {
  constexpr int kRounds = 60;
  double least = 1;
  loop();
  for (int round = 0; round < kRounds; ++round) {
    const double start = seconds(Clock::thread);
    loop();
    least = std::min(least, seconds(Clock::thread) - start);
  }
  return 2e-9 * static_cast<double>(kSteps * kSums * lanes) / least;
}

}  // namespace

Peak measured_peak() {
#if defined(__x86_64__)
  if (isa_in_use() == Isa::avx512) return {gflops(avx512_f32, 16), gflops(avx512_f64, 8)};
  if (isa_in_use() == Isa::avx2) return {gflops(avx2_f32, 8), gflops(avx2_f64, 4)};
#endif
  return {gflops(scalar_f32, 1), gflops(scalar_f64, 1)};
}

}  // namespace shardproof::bench
