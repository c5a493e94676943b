#pragma once

#include <cstdint>
#include <vector>

#include "weights/base/error.h"

namespace shardproof {

/// The rows of a pass in which some have fewer tokens than L, for every row of the global batch:
/// its tokens in the pass, and the position after its last token so far. Elements after a row's
/// tokens are padding: they are not cached, and as queries see only the row's tokens.
struct RowTokens {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> ends;
};

}  // namespace shardproof
