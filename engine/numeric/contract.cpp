#include "engine/numeric/contract.h"

#include <cfenv>
#include <cmath>
#include <stdexcept>

#include "engine/numeric/exact_sum.h"
#include "engine/numeric/kernels.h"
#include "engine/numeric/rounding_test.h"

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
  std::vector<double> norms(static_cast<std::size_t>(M));
  constexpr std::int64_t kLanes = 8;  // sums side by side: any order of additions serves a bound
  for (std::int64_t i = 0; i < M; ++i) {
    double sums[kLanes] = {};
    const float* const row = a + i * K;
    std::int64_t k = 0;
    for (; k + kLanes <= K; k += kLanes)
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        const double v = static_cast<double>(row[k + lane]);
        sums[lane] += v * v;
      }
    for (; k < K; ++k) sums[0] += static_cast<double>(row[k]) * static_cast<double>(row[k]);
    double sum = 0.0;
    for (const double part : sums) sum += part;
    norms[static_cast<std::size_t>(i)] = std::sqrt(sum);
  }
  return norms;
}

std::vector<double> column_norms(const float* b, std::int64_t K, std::int64_t N) {
  std::vector<double> norms(static_cast<std::size_t>(N));
  for (std::int64_t k = 0; k < K; ++k)
    for (std::int64_t j = 0; j < N; ++j) {
      const double v = static_cast<double>(b[k * N + j]);
      norms[static_cast<std::size_t>(j)] += v * v;
    }
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

}  // namespace

Products contract(std::int64_t M, std::int64_t N, const std::vector<Term>& terms) {
  std::int64_t length = 0;
  for (const Term& term : terms) length += term.K;
  require_provable(length);
  Products out;
  out.values.resize(static_cast<std::size_t>(M * N));
  if (run_exactly(M, N, terms, out.values.data())) return out;

  out.bounds.assign(out.values.size(), 0.0);
  double operations = 0.0;
  for (const Term& term : terms) {
    operations += static_cast<double>(term.K);
    const std::vector<double> rows = row_norms(term.a, M, term.K);
    const std::vector<double> columns = column_norms(term.b, term.K, N);
    for (std::int64_t i = 0; i < M; ++i) {
      const double row = rows[static_cast<std::size_t>(i)];
      double* bound = out.bounds.data() + i * N;
      for (std::int64_t j = 0; j < N; ++j) bound[j] += row * columns[static_cast<std::size_t>(j)];
    }
  }
  for (double& bound : out.bounds) bound = sum_bound(operations, bound);
  return out;
}

float exact_dot(const float* a, std::int64_t stride_a, const float* b, std::int64_t stride_b,
                std::int64_t n) {
  require_provable(n);
  double sum = 0.0;
  double magnitude = 0.0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double product =
        static_cast<double>(a[i * stride_a]) * static_cast<double>(b[i * stride_b]);
    sum += product;
    magnitude += std::abs(product);
  }
  if (magnitude == 0.0) return 0.0F;
  if (const auto decided = decide(sum, sum_bound(static_cast<double>(n), magnitude)))
    return *decided;
  ExactSum exact;
  for (std::int64_t i = 0; i < n; ++i) exact.add_product(a[i * stride_a], b[i * stride_b]);
  return exact.rounded();
}

void chain(std::int64_t M, std::int64_t N, const std::vector<Term>& terms, float* c) {
  const auto kernel = kernels_in_use().f32;
  for (const Term& term : terms)
    kernel(M, N, term.K, term.a, term.K, term.b, N, c, N, &term == terms.data());
}

}  // namespace shardproof
