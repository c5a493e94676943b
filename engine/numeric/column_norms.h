#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace shardproof {

/// Norms |b_j|₂ of the columns of a matrix b[K,N], for the bounds of its products; those that are
/// not zero are raised so far that a bound made of two is a normal f32. Made when they are first
/// asked for, once for all products with the matrix; safe from many threads.
class ColumnNorms {
 public:
  /// Of the same matrix each time.
  const std::vector<double>& of(const float* b, std::int64_t K, std::int64_t N);

 private:
  std::once_flag once_;
  std::vector<double> norms_;
};

/// Raises norms that are not zero so far that a bound made of two is a normal f32.
void raise_tiny_norms(std::vector<double>& norms);

/// The norms of the matrices that a buffer's numbers are, kept with the buffer. Whoever has changed
/// the numbers, or may have, forgets them; what is copied or moved begins without. Safe from many
/// threads, but to forget, copy or move is not while others ask.
class KeptNorms {
 public:
  /// How a matrix lies in its buffer: extent and stride of each letter of K, the outermost first,
  /// then 0, then the same of N.
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
  struct Matrix;  // of a list, as a buffer is seldom more than one
  void forget_all() noexcept;

  std::atomic<Matrix*> first_{nullptr};
};

}  // namespace shardproof
