#pragma once

#include "golden/trace/read/dump.h"

namespace shardproof::candidate {

/// Rounding error of an encoding: |RN(x) − x| is at most unit·|x|, or least.
struct Coarse {
  double unit = 0.0, least = 0.0;
};
Coarse coarse_of(dump::Encoding encoding);

}  // namespace shardproof::candidate
