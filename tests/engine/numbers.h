#pragma once

#include <span>
#include <vector>

#include "engine/shards/sharded.h"

namespace shardproof {

/// Every chip's f32 numbers, to be changed in place.
inline std::vector<std::span<float>> numbers_of(Sharded& value) {
  std::vector<std::span<float>> chips;
  for (int chip = 0; chip < value.torus().chips(); ++chip) chips.push_back(value.f32_of(chip));
  return chips;
}

}  // namespace shardproof
