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

/// Columns that a kernel of sums adds up side by side, and numbers of its state for one row: for
/// each column Σ a·b, Σ (|a|+worst)·|b|, the smallest and the largest Σ so far, Σ worst·|b| and
/// Σ likely·|b|, quantity by quantity.
constexpr long kSumsColumns = 16, kSumsQuantities = 6;
constexpr long kSumsState = kSumsColumns * kSumsQuantities;

/// Rows of a factor, each with its center and, unless all are exact, its radii; otherwise null.
struct SumsRows {
  const double *const *center, *const *worst, *const *likely;
};

/// Adds terms a[row, first + k]·b[k, column] to the state of each row, k ascending, in f64. b is
/// [terms, kSumsColumns]. Without `range` the smallest and the largest Σ stay as they are.
using SumsKernel = void (*)(long rows, long first, long terms, const SumsRows& a, const double* b,
                            double* state, bool range);

/// f32: the chain of the f32 regime, with f32 accumulators. f64: the sums of the exact regime, with
/// f64 accumulators, where products are exact and every rounding raises the inexact flag; the
/// kernel contains nothing else that could raise it.
struct Kernels {
  ProductKernel<float> f32;
  ProductKernel<double> f64;
  SumsKernel sums;
};

extern const Kernels kKernelsScalar, kKernelsAvx2, kKernelsAvx512;

/// The kernels of isa_in_use().
const Kernels& kernels_in_use();

}  // namespace shardproof
