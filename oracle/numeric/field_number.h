#pragma once

#include <array>
#include <cstdint>

#include "weights/base/tensor.h"

namespace shardproof::oracle::field {

/// A number of the field regime (docs/field.md section 1.1): lanes below p, 0 if unused.
struct Number {
  std::array<std::uint64_t, 3> lane{};
  bool operator==(const Number&) const = default;
};

using Tensor = Array<Number>;

}  // namespace shardproof::oracle::field
