#include <immintrin.h>

#include "weights/random/detail/kernels.h"
#include "weights/random/philox_kernel.inl"

namespace {

struct Lanes {
  using Vec = __m512i;
  static constexpr int kLanes = 8;
  static Vec splat(unsigned long long x) { return _mm512_set1_epi64(static_cast<long long>(x)); }
  static Vec above(unsigned long long x) {
    return _mm512_add_epi64(splat(x), _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7));
  }
  static Vec product(Vec a, Vec b) { return _mm512_mul_epu32(a, b); }
  static Vec upper(Vec v) { return _mm512_srli_epi64(v, 32); }
  static Vec mix(Vec a, Vec b, Vec c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
  static Vec pair(Vec a, Vec b) {
    return _mm512_mask_blend_epi32(0xAAAA, a, _mm512_slli_epi64(b, 32));
  }
  static Vec lower_part(Vec a, Vec b) { return _mm512_unpacklo_epi64(a, b); }
  static Vec upper_part(Vec a, Vec b) { return _mm512_unpackhi_epi64(a, b); }
  static void store(unsigned* p, Vec v) { _mm512_storeu_si512(p, v); }
  static void store(float* p, Vec v, int low, const float* f) {
    const __m512 number = _mm512_cvtepi32_ps(_mm512_add_epi32(v, _mm512_set1_epi32(low)));
    _mm512_storeu_ps(p, _mm512_mul_ps(number, _mm512_loadu_ps(f)));
  }
};

}  // namespace

namespace shardproof {
extern const RandomKernels kRandomAvx512{random_words<Lanes>, random_products<Lanes>};
}
