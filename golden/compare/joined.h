#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// Where an element of a cache behind the slots of prefixes comes from.
struct JoinedElement {
  bool of_prefix = false;
  std::size_t place = 0;  ///< in the cache of the prefixes, or in that of the rows
};

/// Returns the source of each element, in order, of the caches [B..M..] of rows behind the slots of
/// the prefixes [N..T..] that they continue: M counts both. `letters` are the cache's.
std::vector<JoinedElement> joined_elements(std::string_view letters, const Shape& of_prefixes,
                                           const Shape& of_rows);

}  // namespace shardproof
