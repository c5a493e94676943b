#include <immintrin.h>

#include "engine/numeric/contract_kernel.inl"
#include "engine/numeric/detail/kernels.h"
#include "engine/numeric/sums_kernel.inl"

// 32 registers: at most 24 accumulators in a tile, two for the row of b, one for a.
namespace {

constexpr int vectors_for(int rows) { return rows <= 2 ? 8 : rows <= 3 ? 6 : rows <= 6 ? 4 : 2; }

struct Single {
  using Acc = float;
  using Vec = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;
  static constexpr int kRows = 12;
  static constexpr long kPackM = 13, kPackN = 0;
  static constexpr int wide(int rows) { return vectors_for(rows); }
  static Vec zero() { return _mm512_setzero_ps(); }
  static Vec splat(float x) { return _mm512_set1_ps(x); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
  static Mask mask(long lanes) { return static_cast<Mask>((1U << lanes) - 1U); }
  static Vec load(const float* p) { return _mm512_loadu_ps(p); }
  static Vec load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  static void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
  static void store(float* p, Vec v, Mask m) { _mm512_mask_storeu_ps(p, m, v); }
};

struct Twin {
  using Acc = double;
  using Vec = __m512d;
  using Mask = __mmask8;
  static constexpr int kLanes = 8;
  static constexpr int kRows = 12;
  static constexpr long kPackM = 13, kPackN = 0;
  static constexpr int kSumsRows = 4;
  static constexpr int wide(int rows) { return vectors_for(rows); }
  static Vec zero() { return _mm512_setzero_pd(); }
  static Vec splat(double x) { return _mm512_set1_pd(x); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_pd(a, b, c); }
  static Mask mask(long lanes) { return static_cast<Mask>((1U << lanes) - 1U); }
  static Vec load(const double* p) { return _mm512_loadu_pd(p); }
  static Vec load(const double* p, Mask m) { return _mm512_maskz_loadu_pd(m, p); }
  static Vec load(const float* p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
  static Vec load(const float* p, Mask m) { return _mm512_cvtps_pd(_mm256_maskz_loadu_ps(m, p)); }
  static void store(double* p, Vec v) { _mm512_storeu_pd(p, v); }
  static void store(double* p, Vec v, Mask m) { _mm512_mask_storeu_pd(p, m, v); }
  static Vec abs(Vec v) { return _mm512_abs_pd(v); }
  static Vec least(Vec a, Vec b) { return _mm512_min_pd(a, b); }
  static Vec most(Vec a, Vec b) { return _mm512_max_pd(a, b); }
};

}  // namespace

namespace shardproof {
extern const Kernels kKernelsAvx512{product<Single>, product<Twin>, sums<Twin>};
}
