#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "golden/trace/read/detail/sink.h"

namespace shardproof::dump {

/// What an array's elements are in a file, before it is known what they mean.
struct ElementType {
  enum class Kind { floating, signed_integer, unsigned_integer, boolean, opaque };
  Kind kind = Kind::floating;
  std::size_t bytes = 4;
  bool big_endian = false;

  std::string to_string() const;  ///< "f32", "big-endian uint16", "2 opaque bytes"
};

/// How elements are read, or why they are not.
struct EncodingOrNot {
  std::optional<Encoding> encoding;
  std::string why;
};
/// Of a value that has the attribute `encoding`, or none. Integers of other widths are widened,
/// booleans are int8.
EncodingOrNot encoding_of(const ElementType& type, std::optional<std::string_view> declared);

/// Gives whole elements of that type to `sink` as elements of that encoding. Throws
/// Error("dump_value", ...) on a uint64 that is no int64.
void convert(std::span<const std::byte> elements, const ElementType& type, Encoding encoding,
             std::string_view value, Sink& sink);

}  // namespace shardproof::dump
