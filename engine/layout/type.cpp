#include "engine/layout/type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

namespace shardproof {

std::ostream& operator<<(std::ostream& out, const Type& type) {
  return out << fmt::format("{} [{}]{}", type.layout.to_string(), fmt::join(type.shape, ","),
                            type.integer ? " int32" : "");
}

}  // namespace shardproof
