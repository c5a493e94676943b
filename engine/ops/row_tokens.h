#pragma once

#include <cstdint>
#include <vector>

#include "weights/base/error.h"

namespace shardproof {

/// Of a pass in which rows have fewer tokens than L, for every row of the whole batch: its tokens
/// in the pass, and the position after its last one so far. What stands after a row's tokens is
/// padding: it is not cached, and as a query it sees none but the row's tokens.
struct RowTokens {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> ends;
};

}  // namespace shardproof
