// The fallback for any processor: one accumulator at a time in the source, whatever the compiler
// generates. Compiled with -ffp-contract=fast for the f64 kernel: a product of f32 is exact in f64,
// so fusing it changes no bit. Chains of f32 and sums of bounds, whose factors have all of f64's
// digits, do not rely on that: their fma is explicit.
#include "engine/numeric/contract_kernel.inl"
#include "engine/numeric/detail/kernels.h"
#include "engine/numeric/sums_kernel.inl"

namespace {

template <class A>
struct Lanes {
  using Acc = A;
  static constexpr int kLanes = 8;
  static constexpr int kRows = 2;
  static constexpr long kPackM = 3, kPackN = 0;
  struct Vec {
    A lane[kLanes];
  };
  using Mask = long;
  static constexpr int wide(int) { return 1; }
  static Mask mask(long lanes) { return lanes; }
  static Vec zero() { return {}; }
  static Vec splat(A x) {
    Vec v;
    for (A& lane : v.lane) lane = x;
    return v;
  }
  template <class B>
  static Vec load(const B* p, Mask m = kLanes) {
    Vec v{};
    for (int i = 0; i < m; ++i) v.lane[i] = static_cast<A>(p[i]);
    return v;
  }
  static void store(A* p, const Vec& v, Mask m = kLanes) {
    for (int i = 0; i < m; ++i) p[i] = v.lane[i];
  }
};

struct Single : Lanes<float> {
  static Vec fma(const Vec& a, const Vec& b, Vec c) {
    for (int i = 0; i < kLanes; ++i) c.lane[i] = __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]);
    return c;
  }
};

struct Twin : Lanes<double> {
  static Vec fma(const Vec& a, const Vec& b, Vec c) {
    for (int i = 0; i < kLanes; ++i) c.lane[i] += a.lane[i] * b.lane[i];
    return c;
  }
};

struct Summing : Lanes<double> {
  static Vec fma(const Vec& a, const Vec& b, Vec c) {
    for (int i = 0; i < kLanes; ++i) c.lane[i] = __builtin_fma(a.lane[i], b.lane[i], c.lane[i]);
    return c;
  }
  static constexpr int kSumsRows = 1;
  static Vec abs(Vec v) {
    for (double& lane : v.lane) lane = lane < 0 ? -lane : lane;
    return v;
  }
  static Vec least(const Vec& a, Vec b) {
    for (int i = 0; i < kLanes; ++i) b.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
    return b;
  }
  static Vec most(const Vec& a, Vec b) {
    for (int i = 0; i < kLanes; ++i) b.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
    return b;
  }
};

}  // namespace

namespace shardproof {
extern const Kernels kKernelsScalar{product<Single>, product<Twin>, sums<Summing>};
}
