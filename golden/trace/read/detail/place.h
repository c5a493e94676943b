#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "golden/trace/read/dump.h"

namespace shardproof::dump {

/// What the path of an array in a file says: whose shard it is, and of which value.
struct Place {
  std::optional<std::array<int, 3>> chip;
  std::string id;
};

/// Of "ID" or "chips/X_Y_Z/ID". Throws Error("dump_value", ...) for any other path under chips, and
/// for a name that is empty or has control characters.
Place place_of(std::string_view path);

/// The coordinates of a chip's group, "X_Y_Z". Throws Error("dump_value", ...).
std::array<int, 3> chip_of(std::string_view group);

/// The first folder of a path, "" if it has none.
std::string_view folder_of(std::string_view path);

/// That attributes of two shards say the same. What a writer added of its own may differ. Throws
/// Error("dump_value", ...), which names the second by its path.
void require_same(const Attributes& one, const Attributes& other, std::string_view path);

/// That the attributes of a file are those of a trace of version 1. Throws
/// Error("dump_format", ...).
void require_trace(const Attributes& attributes);

}  // namespace shardproof::dump
