#include "engine/numeric/detail/cpu_needs.h"

namespace shardproof {

// Data only: no instruction of this file may run before the processor is checked. The order is that
// of missing_cpu_feature's answer. Extensions that a compiler uses only where it is told to, such
// as AES, are not listed.
constinit const CpuFeature kCpuNeeds[] = {
#ifdef __AVX512F__
    {"AVX512F", 7, CpuFeature::ebx, 16, CpuFeature::zmm},
#endif
#ifdef __AVX512DQ__
    {"AVX512DQ", 7, CpuFeature::ebx, 17, CpuFeature::zmm},
#endif
#ifdef __AVX512IFMA__
    {"AVX512IFMA", 7, CpuFeature::ebx, 21, CpuFeature::zmm},
#endif
#ifdef __AVX512CD__
    {"AVX512CD", 7, CpuFeature::ebx, 28, CpuFeature::zmm},
#endif
#ifdef __AVX512BW__
    {"AVX512BW", 7, CpuFeature::ebx, 30, CpuFeature::zmm},
#endif
#ifdef __AVX512VL__
    {"AVX512VL", 7, CpuFeature::ebx, 31, CpuFeature::zmm},
#endif
#ifdef __AVX512VBMI__
    {"AVX512VBMI", 7, CpuFeature::ecx, 1, CpuFeature::zmm},
#endif
#ifdef __AVX512VBMI2__
    {"AVX512VBMI2", 7, CpuFeature::ecx, 6, CpuFeature::zmm},
#endif
#ifdef __AVX512VNNI__
    {"AVX512VNNI", 7, CpuFeature::ecx, 11, CpuFeature::zmm},
#endif
#ifdef __AVX512BITALG__
    {"AVX512BITALG", 7, CpuFeature::ecx, 12, CpuFeature::zmm},
#endif
#ifdef __AVX512VPOPCNTDQ__
    {"AVX512VPOPCNTDQ", 7, CpuFeature::ecx, 14, CpuFeature::zmm},
#endif
#ifdef __AVX512FP16__
    {"AVX512FP16", 7, CpuFeature::edx, 23, CpuFeature::zmm},
#endif
#ifdef __AVX2__
    {"AVX2", 7, CpuFeature::ebx, 5, CpuFeature::ymm},
#endif
#ifdef __FMA__
    {"FMA", 1, CpuFeature::ecx, 12, CpuFeature::ymm},
#endif
#ifdef __F16C__
    {"F16C", 1, CpuFeature::ecx, 29, CpuFeature::ymm},
#endif
#ifdef __AVX__
    {"AVX", 1, CpuFeature::ecx, 28, CpuFeature::ymm},
#endif
#ifdef __BMI2__
    {"BMI2", 7, CpuFeature::ebx, 8, CpuFeature::general},
#endif
#ifdef __BMI__
    {"BMI1", 7, CpuFeature::ebx, 3, CpuFeature::general},
#endif
#ifdef __LZCNT__
    {"LZCNT", 0x80000001, CpuFeature::ecx, 5, CpuFeature::general},
#endif
#ifdef __MOVBE__
    {"MOVBE", 1, CpuFeature::ecx, 22, CpuFeature::general},
#endif
#ifdef __POPCNT__
    {"POPCNT", 1, CpuFeature::ecx, 23, CpuFeature::general},
#endif
#ifdef __SSE4_2__
    {"SSE4.2", 1, CpuFeature::ecx, 20, CpuFeature::general},
#endif
#ifdef __SSE4_1__
    {"SSE4.1", 1, CpuFeature::ecx, 19, CpuFeature::general},
#endif
#ifdef __SSSE3__
    {"SSSE3", 1, CpuFeature::ecx, 9, CpuFeature::general},
#endif
#ifdef __SSE3__
    {"SSE3", 1, CpuFeature::ecx, 0, CpuFeature::general},
#endif
#ifdef __FMA4__
    {"FMA4", 0x80000001, CpuFeature::ecx, 16, CpuFeature::ymm},
#endif
#ifdef __XOP__
    {"XOP", 0x80000001, CpuFeature::ecx, 11, CpuFeature::ymm},
#endif
#ifdef __TBM__
    {"TBM", 0x80000001, CpuFeature::ecx, 21, CpuFeature::general},
#endif
    {nullptr, 0, CpuFeature::eax, 0, CpuFeature::general}};

}  // namespace shardproof
