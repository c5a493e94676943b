#define SHARDPROOF_FMA_LOOP kFmaLoopBaseline
#ifdef __AVX__
#define SHARDPROOF_VECTOR 32
#else
#define SHARDPROOF_VECTOR 16
#endif
#include "tools/bench/fma_loop.inl"
