#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "golden/trace/read/dump.h"

namespace shardproof::dump {

/// The chip and the value that the path of an array in a file names.
struct PathPlace {
  std::optional<std::array<int, 3>> chip;
  std::string id;
};

/// Parses "ID" or "chips/X_Y_Z/ID". Throws Error("dump_value", ...) for any other path under chips,
/// and for a name that is empty or has control characters.
PathPlace place_of(std::string_view path);

/// Parses the coordinates in a chip group's name, "X_Y_Z". Throws Error("dump_value", ...).
std::array<int, 3> chip_of(std::string_view group);

/// Returns the first folder of a path, "" if it has none.
std::string_view folder_of(std::string_view path);

/// Checks that two shards have the same attributes; those not in the format may differ. Throws
/// Error("dump_value", ...) naming the second shard's path.
void require_same(const Attributes& one, const Attributes& other, std::string_view path);

/// Checks that the attributes of a file are those of a trace of version 1. Throws
/// Error("dump_format", ...).
void require_trace(const Attributes& attributes);

}  // namespace shardproof::dump
