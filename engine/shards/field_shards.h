#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/shards/field.h"
#include "engine/shards/per_chip.h"

namespace shardproof {

/// What the elements of a value of the field regime are (docs/field.md section 1.4).
enum class FieldSort { number, max, candidate, index, token };

/// Shards of field elements: complete, or the summands of a partial sum.
struct FieldShards {
  ChipArrays<FieldElement> values;
  std::shared_ptr<const Field> field;
  FieldSort sort = FieldSort::number;
  FieldDegree degree = {};
};

}  // namespace shardproof
