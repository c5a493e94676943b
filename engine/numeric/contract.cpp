#include "engine/numeric/contract.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <stdexcept>

#include "engine/numeric/compensated_sum.h"
#include "engine/numeric/kernels.h"
#include "engine/numeric/rounding_test.h"
#include "weights/bf16.h"

namespace shardproof {

namespace {

/// Runs the products between a clear and a read of the inexact flag; a function of its own, so that
/// no floating-point work moves across them.
__attribute__((noinline)) bool run_exactly(std::int64_t M, std::int64_t N,
                                           const std::vector<Term>& terms, double* c) {
  const auto kernel = kernels_in_use().f64;
  std::feclearexcept(FE_INEXACT);
  for (const Term& term : terms)
    kernel(M, N, term.K, term.a, term.K, term.b, N, c, N, &term == terms.data());
  asm volatile("" : : "r"(c) : "memory");
  return std::fetestexcept(FE_INEXACT) == 0;
}

/// The bounds are proved for fewer than 2^30 products.
void require_provable(std::int64_t products) {
  if (products >= std::int64_t{1} << 30)
    throw std::length_error("a contraction over 2^30 products or more");
}

std::vector<double> row_norms(const float* a, std::int64_t M, std::int64_t K) {
  // Side by side, so that additions need not wait for each other.
  constexpr std::int64_t kSums = 16;
  std::vector<double> norms(static_cast<std::size_t>(M));
  for (std::int64_t i = 0; i < M; ++i) {
    const float* row = a + i * K;
    double sums[kSums] = {};
    std::int64_t k = 0;
    for (; k + kSums <= K; k += kSums)
      for (std::int64_t s = 0; s < kSums; ++s) {
        const double v = static_cast<double>(row[k + s]);
        sums[s] += v * v;
      }
    double sum = 0.0;
    for (; k < K; ++k) sum += static_cast<double>(row[k]) * static_cast<double>(row[k]);
    for (const double part : sums) sum += part;
    norms[static_cast<std::size_t>(i)] = std::sqrt(sum);
  }
  return norms;
}

std::vector<double> column_norms(const float* b, std::int64_t K, std::int64_t N) {
  constexpr std::int64_t kRows = 4;  // at a time, for fewer trips to the sums
  std::vector<double> norms(static_cast<std::size_t>(N));
  const auto square = [](float v) { return static_cast<double>(v) * static_cast<double>(v); };
  std::int64_t k = 0;
  for (; k + kRows <= K; k += kRows, b += kRows * N)
    for (std::int64_t j = 0; j < N; ++j)
      norms[static_cast<std::size_t>(j)] +=
          (square(b[j]) + square(b[N + j])) + (square(b[2 * N + j]) + square(b[3 * N + j]));
  for (; k < K; ++k, b += N)
    for (std::int64_t j = 0; j < N; ++j) norms[static_cast<std::size_t>(j)] += square(b[j]);
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

/// Raises norms that are not zero so far that a bound made of two is a normal f32.
std::vector<double> not_tiny(std::vector<double> norms) {
  for (double& norm : norms)
    if (norm != 0.0) norm = std::max(norm, 0x1p-36);
  return norms;
}

}  // namespace

const std::vector<double>& ColumnNorms::of(const float* b, std::int64_t K, std::int64_t N) {
  std::call_once(once_, [&] { norms_ = not_tiny(column_norms(b, K, N)); });
  return norms_;
}

Products contract(std::int64_t M, std::int64_t N, const std::vector<Term>& terms) {
  std::int64_t length = 0;
  for (const Term& term : terms) length += term.K;
  require_provable(length);
  Products out;
  out.values.resize(static_cast<std::size_t>(M * N));
  if (run_exactly(M, N, terms, out.values.data())) return out;

  // sum_bound of the norms' products, raised by 2^-22 so that its f32 is not below it.
  const double factor = sum_bound(static_cast<double>(length), 1.0) * (1.0 + 0x1p-22);
  out.bounds.resize(out.values.size());
  std::vector<double> sums(terms.size() > 1 ? out.values.size() : 0);
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const std::vector<double> rows = not_tiny(row_norms(terms[t].a, M, terms[t].K));
    ColumnNorms own;
    const std::vector<double>& columns =
        (terms[t].norms != nullptr ? *terms[t].norms : own).of(terms[t].b, terms[t].K, N);
    for (std::int64_t i = 0; i < M; ++i) {
      const double row = factor * rows[static_cast<std::size_t>(i)];
      float* const bound = out.bounds.data() + i * N;
      double* const sum = sums.empty() ? nullptr : sums.data() + i * N;
      if (terms.size() == 1)
        for (std::int64_t j = 0; j < N; ++j)
          bound[j] = static_cast<float>(row * columns[static_cast<std::size_t>(j)]);
      else if (t == 0)
        for (std::int64_t j = 0; j < N; ++j) sum[j] = row * columns[static_cast<std::size_t>(j)];
      else
        for (std::int64_t j = 0; j < N; ++j) {
          sum[j] += row * columns[static_cast<std::size_t>(j)];
          bound[j] = static_cast<float>(sum[j]);
        }
    }
  }
  return out;
}

float exact_dot(std::span<const Pairs> parts) {
  std::int64_t n = 0;
  double sum = 0.0;
  double magnitude = 0.0;
  for (const auto& [a, stride_a, b, stride_b, pairs] : parts) {
    n += pairs;
    require_provable(n);
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double product =
          static_cast<double>(a[i * stride_a]) * static_cast<double>(b[i * stride_b]);
      sum += product;
      magnitude += std::abs(product);
    }
  }
  if (magnitude == 0.0) return 0.0F;
  if (const auto decided = decide(sum, sum_bound(static_cast<double>(n), magnitude)))
    return *decided;
  return settled([&](auto& all) {
    for (const auto& [a, stride_a, b, stride_b, pairs] : parts)
      for (std::int64_t i = 0; i < pairs; ++i) all.add_product(a[i * stride_a], b[i * stride_b]);
  });
}

void bf16_chain(std::int64_t M, std::int64_t N, const std::vector<Term>& terms, float* c) {
  const auto kernel = kernels_in_use().f32;
  std::fill_n(c, M * N, 0.0F);
  for (const Term& term : terms)
    for (std::int64_t k = 0; k < term.K; ++k) {
      // One step of every chain, which the kernel interrupts without a trace.
      kernel(M, N, 1, term.a + k, term.K, term.b + k * N, N, c, N, false);
      for (std::int64_t i = 0; i < M * N; ++i) c[i] = round_to_bf16(c[i]);
    }
}

void chain(std::int64_t M, std::int64_t N, const std::vector<Term>& terms, float* c) {
  const auto kernel = kernels_in_use().f32;
  for (const Term& term : terms)
    kernel(M, N, term.K, term.a, term.K, term.b, N, c, N, &term == terms.data());
}

}  // namespace shardproof
