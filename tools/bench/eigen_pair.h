#pragma once

namespace shardproof::bench {

/// Unsharded FFN in Eigen, compiled once per instruction set.
struct EigenPair {
  /// Computes y = (2·x·w1)·w2, all row-major: x [T,E], w1 [E,F], h [T,F], w2 [F,E], y [T,E]. The
  /// caller provides `h` and `y`, so that only Eigen's own packing allocates. Without `activation`
  /// nothing is doubled.
  void (*f32)(long T, long E, long F, const float* x, const float* w1, const float* w2, float* h,
              float* y, bool activation);
  void (*f64)(long T, long E, long F, const double* x, const double* w1, const double* w2,
              double* h, double* y, bool activation);
  const char* (*isa)();  ///< instruction sets that Eigen reports
};

extern const EigenPair kEigenBaseline;
#ifdef SHARDPROOF_EIGEN_AVX512
extern const EigenPair kEigenAvx512;
#endif

/// Returns the best variant that this machine can run.
const EigenPair& eigen_in_use();

}  // namespace shardproof::bench
