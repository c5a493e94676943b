#pragma once

namespace shardproof::bench {

/// Peak fused multiply-add throughput of a processor: independent chains in registers, no memory;
/// the reference of kernel speeds. Compiled once per instruction set.
struct FmaLoop {
  /// Does at least `count` multiply-adds; returns their result, so that they are not optimized
  /// away.
  float (*f32)(long count);
  double (*f64)(long count);
};

extern const FmaLoop kFmaLoopBaseline;
#ifdef SHARDPROOF_EIGEN_AVX512
extern const FmaLoop kFmaLoopAvx512;
#endif

}  // namespace shardproof::bench
