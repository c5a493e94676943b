#include "engine/numeric/detail/kernels.h"

#include "weights/base/isa.h"

namespace shardproof {

const Kernels& kernels_in_use() {
#ifdef SHARDPROOF_VECTOR_KERNELS
  if (isa_in_use() == Isa::avx512) return kKernelsAvx512;
  if (isa_in_use() == Isa::avx2) return kKernelsAvx2;
#endif
  return kKernelsScalar;
}

}  // namespace shardproof
