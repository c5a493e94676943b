#pragma once

// The product kernels of each instruction set. Included by the files compiled for one set, so this
// header includes nothing.
namespace shardproof {

/// A row-major product: C[M,N] = a[M,K]·b[K,N], rows lda, ldb and ldc elements apart. Every element
/// is one chain, k ascending: c = fma(a[i,k], b[k,j], c), from +0 if `fresh`, else from the C that
/// is there (so that chains can be continued).
template <class C>
using ProductKernel = void (*)(long M, long N, long K, const float* a, long lda, const float* b,
                               long ldb, C* c, long ldc, bool fresh);

/// With f32 accumulators: the chain of the f32 regime. With f64 accumulators: its twin, the sums of
/// the exact regime, where products are exact and every rounding raises the inexact flag; the
/// kernel adds nothing else that could raise it.
struct Kernels {
  ProductKernel<float> f32;
  ProductKernel<double> f64;
};

extern const Kernels kKernelsScalar, kKernelsAvx2, kKernelsAvx512;

/// Those of isa_in_use().
const Kernels& kernels_in_use();

}  // namespace shardproof
