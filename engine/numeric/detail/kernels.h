#pragma once

// The product kernels of each instruction set. Included by the files compiled for one set, so this
// header includes nothing.
namespace shardproof {

/// A row-major product: C[M,N] = a[M,K]·b[K,N], rows lda, ldb and ldc elements apart. Every element
/// is one chain, k ascending: c = fma(a[i,k], b[k,j], c), from +0 if `fresh`, otherwise from the
/// existing C (so that chains can be continued).
template <class C>
using ProductKernel = void (*)(long M, long N, long K, const float* a, long lda, const float* b,
                               long ldb, C* c, long ldc, bool fresh);

/// f32: the chain of the f32 regime, with f32 accumulators. f64: the sums of the exact regime, with
/// f64 accumulators, where products are exact and every rounding raises the inexact flag; the
/// kernel contains nothing else that could raise it.
struct Kernels {
  ProductKernel<float> f32;
  ProductKernel<double> f64;
};

extern const Kernels kKernelsScalar, kKernelsAvx2, kKernelsAvx512;

/// The kernels of isa_in_use().
const Kernels& kernels_in_use();

}  // namespace shardproof
