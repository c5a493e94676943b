#pragma once

#include <cstddef>
#include <functional>

namespace shardproof::oracle {

/// Calls body(i) once for each i in [0, n), in any order, on up to `threads` threads, the caller's
/// included, and returns when all are done. Rethrows an exception of the lowest i that threw one.
/// Outputs are what is divided, never a sum, so that values do not depend on who computes them.
void each(std::size_t n, int threads, const std::function<void(std::size_t)>& body);

}  // namespace shardproof::oracle
