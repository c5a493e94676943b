#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "golden/trace/read/dump.h"

namespace shardproof::dump {

/// Contents of the member `shardproof` of an npz.
struct JsonAttributes {
  Attributes file;
  std::map<std::string, Attributes, std::less<>> values;  ///< by ID
};

/// Parses a JSON object: texts unchanged; numbers, true and false as JSON writes them; lists and
/// objects as JSON text; nulls are skipped. Throws Error: "dump_format" (not JSON, not an object, a
/// duplicate name, nested deeper than 32), "dump_value" (a text longer than 64 KiB, an entry of
/// `values` that is not an object).
JsonAttributes parse_json_attributes(std::string_view text);

}  // namespace shardproof::dump
