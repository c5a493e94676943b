#include <immintrin.h>

#include "weights/random/detail/kernels.h"
#include "weights/random/philox_kernel.inl"

namespace {

struct Lanes {
  using Vec = __m256i;
  static constexpr int kLanes = 4;
  static Vec splat(unsigned long long x) { return _mm256_set1_epi64x(static_cast<long long>(x)); }
  static Vec above(unsigned long long x) {
    return _mm256_add_epi64(splat(x), _mm256_setr_epi64x(0, 2, 1, 3));
  }
  static Vec product(Vec a, Vec b) { return _mm256_mul_epu32(a, b); }
  static Vec upper(Vec v) { return _mm256_srli_epi64(v, 32); }
  static Vec mix(Vec a, Vec b, Vec c) { return _mm256_xor_si256(_mm256_xor_si256(a, b), c); }
  static Vec pair(Vec a, Vec b) { return _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xAA); }
  static Vec lower_part(Vec a, Vec b) { return _mm256_unpacklo_epi64(a, b); }
  static Vec upper_part(Vec a, Vec b) { return _mm256_unpackhi_epi64(a, b); }
  static void store(unsigned* p, Vec v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  static void store(float* p, Vec v, int low, const float* f) {
    const __m256 number = _mm256_cvtepi32_ps(_mm256_add_epi32(v, _mm256_set1_epi32(low)));
    _mm256_storeu_ps(p, _mm256_mul_ps(number, _mm256_loadu_ps(f)));
  }
};

}  // namespace

namespace shardproof {
extern const RandomKernels kRandomAvx2{random_words<Lanes>, random_products<Lanes>};
}
