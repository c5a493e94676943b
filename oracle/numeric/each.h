#pragma once

#include <cstddef>
#include <functional>

namespace shardproof::oracle {

/// Calls body(i) once for each i in [0, n), in any order, on up to `threads` threads including the
/// caller's, and returns when all are done. Rethrows the exception of the lowest i that threw. Only
/// outputs are divided among threads, never a sum, so that values do not depend on the division.
void each(std::size_t n, int threads, const std::function<void(std::size_t)>& body);

/// Calls body(i) for each row in [0, rows), in parallel as each() does, in contiguous parts; few
/// elements run on the calling thread alone.
template <class Body>
void each_row(std::size_t rows, std::size_t width, int threads, Body&& body) {
  constexpr std::size_t kElements = 1 << 16;  // least work of a thread
  const std::size_t part = kElements / (width + 1) + 1;
  each((rows + part - 1) / part, threads, [&](std::size_t p) {
    for (std::size_t i = p * part; i < rows && i < (p + 1) * part; ++i) body(i);
  });
}

}  // namespace shardproof::oracle
