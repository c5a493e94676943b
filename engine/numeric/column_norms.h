#pragma once

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

}  // namespace shardproof
