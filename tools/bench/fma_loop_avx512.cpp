#define SHARDPROOF_FMA_LOOP kFmaLoopAvx512
#define SHARDPROOF_VECTOR 64
#include "tools/bench/fma_loop.inl"
