#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "golden/trace/read/dump.h"

namespace shardproof::dump {

/// What the member `shardproof` of an npz says.
struct JsonAttributes {
  Attributes file;
  std::map<std::string, Attributes, std::less<>> values;  ///< by ID
};

/// Reads a JSON object: texts as they are; numbers, true and false as JSON writes them; lists and
/// objects as JSON text; a null is left out. Throws Error: "dump_format" (no JSON, no object, a
/// name twice, nested deeper than 32), "dump_value" (a text longer than 64 KiB, an entry of
/// `values` that is no object).
JsonAttributes parse_json_attributes(std::string_view text);

}  // namespace shardproof::dump
