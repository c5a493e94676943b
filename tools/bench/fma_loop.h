#pragma once

namespace shardproof::bench {

/// As many fused multiply-adds as a processor can do: independent chains in registers, no memory.
/// What a product kernel's speed is a share of. Compiled once per instruction set.
struct FmaLoop {
  /// Does at least `count` multiply-adds; returns what comes of them, so that they are done.
  float (*f32)(long count);
  double (*f64)(long count);
};

extern const FmaLoop kFmaLoopBaseline;
#ifdef SHARDPROOF_EIGEN_AVX512
extern const FmaLoop kFmaLoopAvx512;
#endif

}  // namespace shardproof::bench
