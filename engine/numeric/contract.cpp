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
  constexpr std::int64_t kSums =
      16;  // side by side, so that additions need not wait for each other
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

  double operations = 0.0;
  for (const Term& term : terms) operations += static_cast<double>(term.K);
  out.bounds.resize(out.values.size());
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const std::vector<double> rows = row_norms(terms[t].a, M, terms[t].K);
    const std::vector<double> columns = column_norms(terms[t].b, terms[t].K, N);
    const bool last = t + 1 == terms.size();
    for (std::int64_t i = 0; i < M; ++i) {
      const double row = rows[static_cast<std::size_t>(i)];
      double* bound = out.bounds.data() + i * N;
      for (std::int64_t j = 0; j < N; ++j) {
        const double norms = row * columns[static_cast<std::size_t>(j)];
        const double magnitude = t == 0 ? norms : bound[j] + norms;
        bound[j] = last ? sum_bound(operations, magnitude) : magnitude;
      }
    }
  }
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
