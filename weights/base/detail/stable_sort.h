#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace shardproof {

/// Sorts stably. Replaces std::stable_sort, whose implementation in libstdc++ 12 calls a function
/// that clang 19 warns is deprecated.
template <class T, class Less>
void stable_sort(std::vector<T>& values, Less less) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (less(values[a], values[b])) return true;
    return !less(values[b], values[a]) && a < b;
  });
  std::vector<T> sorted;
  sorted.reserve(values.size());
  for (const std::size_t i : order) sorted.push_back(std::move(values[i]));
  values = std::move(sorted);
}

}  // namespace shardproof
