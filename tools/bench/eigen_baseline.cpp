#define Eigen EigenBaseline
#define SHARDPROOF_EIGEN_PAIR kEigenBaseline
#include "tools/bench/eigen_pair.inl"

namespace shardproof::bench {

const EigenPair& eigen_in_use() {
#ifdef SHARDPROOF_EIGEN_AVX512
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0)
    return kEigenAvx512;
#endif
  return kEigenBaseline;
}

}  // namespace shardproof::bench
