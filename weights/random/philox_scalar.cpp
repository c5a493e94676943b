// The fallback for any processor: lanes in the source, whatever the compiler generates.
#include "weights/random/detail/kernels.h"
#include "weights/random/philox_kernel.inl"

namespace {

struct Lanes {
  static constexpr int kLanes = 4;
  struct Vec {
    unsigned long long lane[kLanes];
  };
  template <class Of>
  static Vec each(Of&& of) {
    Vec v;
    for (int i = 0; i < kLanes; ++i) v.lane[i] = of(i);
    return v;
  }
  static unsigned long long low(unsigned long long x) { return x & 0xffffffff; }
  static Vec splat(unsigned long long x) {
    return each([&](int) { return x; });
  }
  static Vec above(unsigned long long x) {
    return each([&](int i) { return x + static_cast<unsigned long long>(i); });
  }
  static Vec product(const Vec& a, const Vec& b) {
    return each([&](int i) { return low(a.lane[i]) * low(b.lane[i]); });
  }
  static Vec upper(const Vec& v) {
    return each([&](int i) { return v.lane[i] >> 32; });
  }
  static Vec mix(const Vec& a, const Vec& b, const Vec& c) {
    return each([&](int i) { return a.lane[i] ^ b.lane[i] ^ c.lane[i]; });
  }
  static Vec pair(const Vec& a, const Vec& b) {
    return each([&](int i) { return low(a.lane[i]) | b.lane[i] << 32; });
  }
  static Vec in_turn(const Vec& a, const Vec& b, int first) {
    return each([&](int i) { return (i % 2 == 0 ? a : b).lane[first + i / 2]; });
  }
  static Vec lower_part(const Vec& a, const Vec& b) { return in_turn(a, b, 0); }
  static Vec upper_part(const Vec& a, const Vec& b) { return in_turn(a, b, kLanes / 2); }
  static unsigned word(const Vec& v, int i) {
    return static_cast<unsigned>(v.lane[i / 2] >> (i % 2 * 32));
  }
  static void store(unsigned* p, const Vec& v) {
    for (int i = 0; i < 2 * kLanes; ++i) p[i] = word(v, i);
  }
  static void store(float* p, const Vec& v, int low, const float* f) {
    for (int i = 0; i < 2 * kLanes; ++i)
      p[i] = static_cast<float>(low + static_cast<int>(word(v, i))) * f[i];
  }
};

}  // namespace

namespace shardproof {
extern const RandomKernels kRandomScalar{random_words<Lanes>, random_products<Lanes>};
}
