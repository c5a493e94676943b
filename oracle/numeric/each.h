#pragma once

#include <cstddef>
#include <functional>

namespace shardproof::oracle {

/// Calls body(i) once for each i in [0, n), in any order, on up to `threads` threads, the caller's
/// included, and returns when all are done. Rethrows an exception of the lowest i that threw one.
/// Outputs are what is divided, never a sum, so that values do not depend on who computes them.
void each(std::size_t n, int threads, const std::function<void(std::size_t)>& body);

/// Calls body(i) likewise, for rows of so many elements: neighbours together, and a few elements by
/// the calling thread alone.
template <class Body>
void each_row(std::size_t rows, std::size_t width, int threads, Body&& body) {
  constexpr std::size_t kElements = 1 << 16;  // are worth a thread
  const std::size_t part = kElements / (width + 1) + 1;
  each((rows + part - 1) / part, threads, [&](std::size_t p) {
    for (std::size_t i = p * part; i < rows && i < (p + 1) * part; ++i) body(i);
  });
}

}  // namespace shardproof::oracle
