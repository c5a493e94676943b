#pragma once

#include <iosfwd>

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

/// Prints the layout and the global shape, as "BLE_x [4,7,96]", with "int32" if it is.
std::ostream& operator<<(std::ostream& out, const Type& type);

}  // namespace shardproof
