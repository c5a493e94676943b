#include "engine/numeric/contract.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "engine/numeric/detail/compensated_sum.h"
#include "engine/numeric/detail/kernels.h"
#include "engine/numeric/detail/rounding_test.h"
#include "weights/base/bf16.h"

namespace shardproof {

namespace {

/// Runs the products between clearing and reading the inexact flag. Not inlined, so that no
/// floating-point operation moves across either.
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
  // Independent sums, so that additions need not wait for each other.
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

// Vector types: the compiler keeps them in registers, unlike arrays.
constexpr std::int64_t kLanes = 4;
using Lanes = double __attribute__((vector_size(kLanes * sizeof(double))));
using FloatLanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using BitLanes = std::int64_t __attribute__((vector_size(kLanes * sizeof(double))));

/// Sums of products in f64, and of their absolute values.
struct Sums {
  Lanes sum{}, magnitude{};

  void add(const FloatLanes& a, const FloatLanes& b) {
    constexpr std::int64_t kAllButSign = std::numeric_limits<std::int64_t>::max();
    const Lanes product = __builtin_convertvector(a, Lanes) * __builtin_convertvector(b, Lanes);
    sum += product;
    magnitude += std::bit_cast<Lanes>(std::bit_cast<BitLanes>(product) & kAllButSign);
  }
};

/// Loads the first `count` of kLanes numbers, `stride` apart; the others are 0.
FloatLanes load(const float* from, std::int64_t stride, std::int64_t count = kLanes) {
  FloatLanes lanes{};
  if (stride == 1 && count == kLanes)
    std::memcpy(&lanes, from, sizeof(lanes));
  else
    for (std::int64_t i = 0; i < count; ++i) lanes[i] = from[i * stride];
  return lanes;
}

/// Sums of all pairs with one column of b.
Sums sums_of_one(std::span<const Pairs> parts, std::int64_t column) {
  // Two sums, so that additions need not wait for each other.
  Sums even, odd;
  for (const auto& [a, stride_a, first, stride_b, pairs] : parts) {
    if (pairs == 0) continue;  // an empty part may have no b
    const float* const b = first + column;
    std::int64_t i = 0;
    for (; i + 2 * kLanes <= pairs; i += 2 * kLanes) {
      even.add(load(a + i * stride_a, stride_a), load(b + i * stride_b, stride_b));
      odd.add(load(a + (i + kLanes) * stride_a, stride_a),
              load(b + (i + kLanes) * stride_b, stride_b));
    }
    for (; i < pairs; i += kLanes) {
      const std::int64_t rest = std::min(kLanes, pairs - i);
      even.add(load(a + i * stride_a, stride_a, rest), load(b + i * stride_b, stride_b, rest));
    }
  }
  return {even.sum + odd.sum, even.magnitude + odd.magnitude};
}

double total(const Lanes& lanes) { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); }

/// Sums for kVectors vectors of neighbouring columns; the last vector has `count` columns.
template <std::int64_t kVectors>
void sums_of_columns(std::span<const Pairs> parts, std::int64_t column, std::int64_t count,
                     double* sum, double* magnitude) {
  Sums sums[static_cast<std::size_t>(kVectors)];
  for (const auto& [a, stride_a, b, stride_b, pairs] : parts)
    for (std::int64_t i = 0; i < pairs; ++i) {
      const float x = a[i * stride_a];
      const float* const row = b + i * stride_b + column;
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < kVectors; ++v)
        sums[v].add(FloatLanes{x, x, x, x},
                    load(row + v * kLanes, 1, v + 1 < kVectors ? kLanes : count));
    }
  for (std::int64_t v = 0; v < kVectors; ++v) {
    std::memcpy(sum + v * kLanes, &sums[v].sum, sizeof(Lanes));
    std::memcpy(magnitude + v * kLanes, &sums[v].magnitude, sizeof(Lanes));
  }
}

}  // namespace

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
    std::vector<double> rows = row_norms(terms[t].a, M, terms[t].K);
    raise_tiny_norms(rows);
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
  float dot = 0.0F;
  exact_dots(parts, 1, 0, &dot);
  return dot;
}

void exact_dots(std::span<const Pairs> parts, std::int64_t N, std::int64_t apart, float* out) {
  constexpr std::int64_t kVectors = 4;
  constexpr std::int64_t kBlock = kVectors * kLanes;
  std::int64_t n = 0;
  for (const Pairs& part : parts) n += part.n;
  require_provable(n);
  double values[kBlock], bounds[kBlock];
  for (std::int64_t first = 0; first < N; first += kBlock) {
    const std::int64_t columns = std::min(kBlock, N - first);
    if (apart != 1)
      for (std::int64_t c = 0; c < columns; ++c) {
        const Sums sums = sums_of_one(parts, (first + c) * apart);
        values[c] = total(sums.sum);
        bounds[c] = total(sums.magnitude);
      }
    else if (columns == kBlock)
      sums_of_columns<kVectors>(parts, first, kLanes, values, bounds);
    else
      for (std::int64_t c = 0; c < columns; c += kLanes)
        sums_of_columns<1>(parts, first + c, std::min(kLanes, columns - c), values + c, bounds + c);
    for (std::int64_t c = 0; c < columns; ++c)
      bounds[c] = sum_bound(static_cast<double>(n), bounds[c]);
    decide_each(values, bounds, columns, out + first, [&](std::int64_t c) {
      return settled([&](auto& all) {
        for (const auto& [a, stride_a, b, stride_b, pairs] : parts)
          for (std::int64_t i = 0; i < pairs; ++i)
            all.add_product(a[i * stride_a], b[i * stride_b + (first + c) * apart]);
      });
    });
  }
}

void chain_dots(std::span<const Pairs> parts, std::int64_t N, std::int64_t apart, float* out) {
  if (N == 0) return;  // an empty cache has no columns, and b may be null
  std::fill_n(out, N, 0.0F);
  for (const auto& [a, stride_a, b, stride_b, pairs] : parts)
    for (std::int64_t i = 0; i < pairs; ++i) {
      const float x = a[i * stride_a];
      const float* const row = b + i * stride_b;
      if (apart == 1)
        for (std::int64_t c = 0; c < N; ++c) out[c] = std::fma(x, row[c], out[c]);
      else
        for (std::int64_t c = 0; c < N; ++c) out[c] = std::fma(x, row[c * apart], out[c]);
    }
}

void bf16_chain(std::int64_t M, std::int64_t N, const std::vector<Term>& terms, float* c) {
  const auto kernel = kernels_in_use().f32;
  std::fill_n(c, M * N, 0.0F);
  for (const Term& term : terms)
    for (std::int64_t k = 0; k < term.K; ++k) {
      // One step of every chain: stopping and continuing the kernel changes no bit.
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
