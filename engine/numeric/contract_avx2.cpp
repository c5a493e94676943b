#include <immintrin.h>

#include "engine/numeric/contract_kernel.inl"
#include "engine/numeric/detail/kernels.h"
#include "engine/numeric/sums_kernel.inl"

// 16 registers: at most 12 accumulators in a tile.
namespace {
constexpr int vectors_for(int rows) { return rows <= 1 ? 8 : rows <= 3 ? 4 : 2; }

struct Single {
  using Acc = float;
  using Vec = __m256;
  using Mask = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kRows = 6;
  static constexpr long kPackM = 24, kPackN = 256;
  static constexpr int wide(int rows) { return vectors_for(rows); }
  static Vec zero() { return _mm256_setzero_ps(); }
  static Vec splat(float x) { return _mm256_set1_ps(x); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
  static Mask mask(long lanes) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(lanes)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Vec load(const float* p) { return _mm256_loadu_ps(p); }
  static Vec load(const float* p, Mask m) { return _mm256_maskload_ps(p, m); }
  static void store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
  static void store(float* p, Vec v, Mask m) { _mm256_maskstore_ps(p, m, v); }
};

struct Twin {
  using Acc = double;
  using Vec = __m256d;
  using Mask = __m256i;
  static constexpr int kLanes = 4;
  static constexpr int kRows = 6;
  static constexpr long kPackM = 13, kPackN = 0;
  static constexpr int kSumsRows = 2;
  static constexpr int wide(int rows) { return vectors_for(rows); }
  static Vec zero() { return _mm256_setzero_pd(); }
  static Vec splat(double x) { return _mm256_set1_pd(x); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_pd(a, b, c); }
  static Mask mask(long lanes) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(lanes), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  static Vec load(const double* p) { return _mm256_loadu_pd(p); }
  static Vec load(const double* p, Mask m) { return _mm256_maskload_pd(p, m); }
  static Vec load(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
  static Vec load(const float* p, Mask m) {
    const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    const __m128i narrow = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(m, even));
    return _mm256_cvtps_pd(_mm_maskload_ps(p, narrow));
  }
  static void store(double* p, Vec v) { _mm256_storeu_pd(p, v); }
  static void store(double* p, Vec v, Mask m) { _mm256_maskstore_pd(p, m, v); }
  static Vec abs(Vec v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }
  static Vec least(Vec a, Vec b) { return _mm256_min_pd(a, b); }
  static Vec most(Vec a, Vec b) { return _mm256_max_pd(a, b); }
};

}  // namespace

namespace shardproof {
extern const Kernels kKernelsAvx2{product<Single>, product<Twin>, sums<Twin>};
}
