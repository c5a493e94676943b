#include "weights/random/detail/kernels.h"

#include "weights/base/isa.h"

namespace shardproof {

const RandomKernels& random_kernels() {
#ifdef SHARDPROOF_VECTOR_KERNELS
  if (isa_in_use() == Isa::avx512) return kRandomAvx512;
  if (isa_in_use() == Isa::avx2) return kRandomAvx2;
#endif
  return kRandomScalar;
}

}  // namespace shardproof
