#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace shardproof {

/// Norms |b_j|₂ of the columns of a matrix b[K,N], for the bounds of its products; nonzero norms
/// are raised so far that the bound of a product of two is a normal f32. Computed on first use,
/// once for all products with the matrix. Thread-safe.
class ColumnNorms {
 public:
  /// Must be called with the same matrix each time.
  const std::vector<double>& of(const float* b, std::int64_t K, std::int64_t N);

 private:
  std::once_flag once_;
  std::vector<double> norms_;
};

/// Raises nonzero norms so far that the bound of a product of two is a normal f32.
void raise_tiny_norms(std::vector<double>& norms);

/// The norms of the matrices in a buffer, cached with it. Whoever changes the numbers, or may have,
/// must call forget(); copies and moves start without norms. Thread-safe, except that forget, copy
/// and move must not run beside other calls.
class KeptNorms {
 public:
  /// The place of a matrix in its buffer: extent and stride of each letter of K, the outermost
  /// first, then 0, then the same of N.
  using Place = std::vector<std::int64_t>;

  KeptNorms() = default;
  KeptNorms(const KeptNorms&) noexcept {}
  KeptNorms(KeptNorms&& other) noexcept { other.forget(); }
  KeptNorms& operator=(const KeptNorms&) noexcept {
    forget();
    return *this;
  }
  KeptNorms& operator=(KeptNorms&& other) noexcept {
    forget();
    other.forget();
    return *this;
  }
  ~KeptNorms() { forget(); }

  ColumnNorms& of(const Place& place);
  void forget() noexcept {
    if (first_.load(std::memory_order_relaxed) != nullptr) forget_all();
  }

 private:
  struct Matrix;  // list node: a buffer seldom holds more than one matrix
  void forget_all() noexcept;

  std::atomic<Matrix*> first_{nullptr};
};

}  // namespace shardproof
