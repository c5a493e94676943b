#define SHARDPROOF_KERNEL kernel_baseline
#define SHARDPROOF_LANES 4
#include "engine/numeric/contract_kernel.inl"
