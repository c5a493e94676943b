#define SHARDPROOF_KERNEL kernel_avx512
#define SHARDPROOF_LANES 8
#include "engine/numeric/contract_kernel.inl"
