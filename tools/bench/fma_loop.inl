// Compiled once per instruction set. SHARDPROOF_VECTOR is the width of its registers in bytes.
#include "tools/bench/fma_loop.h"

namespace shardproof::bench {
namespace {

template <class T>
struct Register;
template <>
struct Register<float> {
  typedef float type __attribute__((vector_size(SHARDPROOF_VECTOR)));
};
template <>
struct Register<double> {
  typedef double type __attribute__((vector_size(SHARDPROOF_VECTOR)));
};

/// Twelve chains cover what two units of five cycles each have in flight, and fit in 16 registers.
template <class T>
T loop(long count) {
  using V = typename Register<T>::type;
  constexpr long kChains = 12, kLanes = SHARDPROOF_VECTOR / static_cast<long>(sizeof(T));
  volatile T half = T(0.5), one = T(1);  // not known to the compiler
  const V a = V{} + half, b = V{} + one;
  V c[kChains];
  for (V& chain : c) chain = V{} + half;  // read anew: chains known to be equal would become one
  for (long done = 0; done < count; done += kChains * kLanes)
#pragma GCC unroll 12
    for (long i = 0; i < kChains; ++i) c[i] = c[i] * a + b;  // tends to 2
  V sum = {};
  for (const V& chain : c) sum += chain;
  T total = 0;
  for (long i = 0; i < kLanes; ++i) total += sum[i];
  return total;
}

}  // namespace

extern const FmaLoop SHARDPROOF_FMA_LOOP = {loop<float>, loop<double>};

}  // namespace shardproof::bench
