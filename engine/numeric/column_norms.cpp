#include "engine/numeric/column_norms.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace shardproof {
namespace {

std::vector<double> norms_of_columns(const float* b, std::int64_t K, std::int64_t N) {
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

}  // namespace

void raise_tiny_norms(std::vector<double>& norms) {
  for (double& norm : norms)
    if (norm != 0.0) norm = std::max(norm, 0x1p-36);
}

const std::vector<double>& ColumnNorms::of(const float* b, std::int64_t K, std::int64_t N) {
  std::call_once(once_, [&] {
    norms_ = norms_of_columns(b, K, N);
    raise_tiny_norms(norms_);
  });
  return norms_;
}

struct KeptNorms::Matrix {
  Place place;
  ColumnNorms norms;
  Matrix* next;
};

ColumnNorms& KeptNorms::of(const Place& place) {
  Matrix* const first = first_.load(std::memory_order_acquire);
  for (Matrix* at = first; at != nullptr; at = at->next)
    if (at->place == place) return at->norms;
  auto made = std::make_unique<Matrix>();
  made->place = place;
  made->next = first;
  while (!first_.compare_exchange_weak(made->next, made.get(), std::memory_order_acq_rel))
    for (Matrix* at = made->next; at != first; at = at->next)  // another thread was faster
      if (at->place == place) return at->norms;
  return made.release()->norms;
}

void KeptNorms::forget_all() noexcept {
  const Matrix* at = first_.exchange(nullptr, std::memory_order_acq_rel);
  while (at != nullptr) {
    const std::unique_ptr<const Matrix> gone(at);
    at = gone->next;
  }
}

}  // namespace shardproof
