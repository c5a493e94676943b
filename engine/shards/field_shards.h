#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/shards/field.h"
#include "engine/shards/per_chip.h"

namespace shardproof {

/// The kind of a field value's elements (docs/field.md section 1.4).
enum class FieldSort { number, max, candidate, index, token };

/// Shards of field elements: complete values or partial sums.
struct FieldShards {
  ChipArrays<FieldElement> values;
  std::shared_ptr<const Field> field;
  FieldSort sort = FieldSort::number;
  FieldDegree degree = {};
};

}  // namespace shardproof
