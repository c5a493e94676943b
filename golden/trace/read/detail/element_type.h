#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "golden/trace/read/detail/sink.h"

namespace shardproof::dump {

/// Element type of an array in a file, before its encoding is decided.
struct ElementType {
  enum class Kind { floating, signed_integer, unsigned_integer, boolean, opaque };
  Kind kind = Kind::floating;
  std::size_t bytes = 4;
  bool big_endian = false;

  std::string to_string() const;  ///< "f32", "big-endian uint16", "2 opaque bytes"
};

/// The encoding of elements, or why they cannot be read.
struct EncodingOrNot {
  std::optional<NumberFormat> encoding;
  std::string why;
};
/// Returns the encoding of a value, given its attributes, of which `encoding` counts. Integers of
/// other widths are widened, booleans become int8.
EncodingOrNot encoding_of(const ElementType& type, const Attributes& attributes);

/// Returns whether elements have the same bytes after they are converted.
bool keeps_bytes(const ElementType& type, NumberFormat encoding);

/// Passes whole elements to `sink`, converted to `encoding`. Throws Error("dump_value", ...) for a
/// uint64 that does not fit in int64.
void convert(std::span<const std::byte> elements, const ElementType& type, NumberFormat encoding,
             std::string_view value, Sink& sink);

}  // namespace shardproof::dump
