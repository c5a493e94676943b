#pragma once

namespace shardproof::bench {

/// The unsharded opponent, compiled once per instruction set.
struct EigenPair {
  /// y = (x·w1 doubled)·w2, all row-major: x [T,E], w1 [E,F], h [T,F], w2 [F,E], y [T,E]. `h` and
  /// `y` are given, so that nothing is allocated but Eigen's own packing. Without `activation`
  /// nothing is doubled.
  void (*f32)(long T, long E, long F, const float* x, const float* w1, const float* w2, float* h,
              float* y, bool activation);
  void (*f64)(long T, long E, long F, const double* x, const double* w1, const double* w2,
              double* h, double* y, bool activation);
  const char* (*isa)();  ///< what Eigen says it uses
};

extern const EigenPair kEigenBaseline;
#ifdef SHARDPROOF_EIGEN_AVX512
extern const EigenPair kEigenAvx512;
#endif

/// The best that this machine runs.
const EigenPair& eigen_in_use();

}  // namespace shardproof::bench
