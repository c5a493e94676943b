#pragma once

#include "engine/layout/layout.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// The type of a value: layout, global shape, and whether it is int32.
struct Type {
  Layout layout;
  Shape shape;
  bool integer = false;
  bool operator==(const Type&) const = default;
};

}  // namespace shardproof
