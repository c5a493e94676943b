#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/numeric/buffer.h"
#include "engine/numeric/column_norms.h"

namespace shardproof {

/// One term of a contraction on one chip, row-major: a[M,K]·b[K,N].
struct Term {
  const float* a;
  const float* b;
  std::int64_t K;
  ColumnNorms* norms = nullptr;  ///< norms of b, if it is in several products
};

/// C[M,N] as f64 sums of the terms' products, and per element a bound on |C − exact|.
struct Products {
  Buffer<double> values;
  Buffer<float> bounds;  ///< empty when every operation was exact (the inexact flag is clear)
};

/// Σ_t a_t·b_t in f64 (f32 products are exact there), with error bounds from Cauchy–Schwarz:
/// |C_ij − exact| ≤ γ_n Σ_t |a_t,i|₂·|b_t,j|₂ (docs/numerics.md).
Products contract(std::int64_t M, std::int64_t N, const std::vector<Term>& terms);

/// The n pairs a[i·stride_a], b[i·stride_b].
struct Pairs {
  const float* a;
  std::int64_t stride_a;
  const float* b;
  std::int64_t stride_b;
  std::int64_t n;
};
/// The correctly rounded dot product of all pairs: (float)RN64(Σ a·b), +0 if it is zero.
float exact_dot(std::span<const Pairs> parts);
/// Correctly rounded dot products with N columns of b, `apart` from each other, of which the parts
/// name the first: out[c] = exact_dot of the parts with b + c·apart.
void exact_dots(std::span<const Pairs> parts, std::int64_t N, std::int64_t apart, float* out);
/// The f32 regime's counterpart of exact_dots: for every column one chain of f32 fma, part after
/// part, from +0.
void chain_dots(std::span<const Pairs> parts, std::int64_t N, std::int64_t apart, float* out);
inline float exact_dot(const float* a, std::int64_t stride_a, const float* b, std::int64_t stride_b,
                       std::int64_t n) {
  const Pairs all{a, stride_a, b, stride_b, n};
  return exact_dot({&all, 1});
}

/// C[M,N] as the f32 regime defines it: for every element one chain of f32 fma over the
/// concatenated terms, k ascending, from +0 (docs/spec.md section 1.2). `c` has room for M·N
/// elements.
void chain(std::int64_t M, std::int64_t N, const std::vector<Term>& terms, float* c);
/// The f32 regime's chains with acc=bf16: c is rounded to bf16 after each f32 fma.
void bf16_chain(std::int64_t M, std::int64_t N, const std::vector<Term>& terms, float* c);

}  // namespace shardproof
