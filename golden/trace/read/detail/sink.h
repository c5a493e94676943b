#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "golden/trace/read/dump.h"

namespace shardproof::dump {

/// Receives what a reader finds in a file, in the file's order.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  virtual void attribute(std::string_view name, std::string_view text) = 0;
  /// Begins an array under its path in the file, "ID" or "chips/0_0_1/ID"; its bytes follow, in one
  /// or more pieces, none of them empty.
  virtual void array(std::string_view path, const Attributes& attributes, NumberFormat encoding,
                     const Shape& shape) = 0;
  virtual void bytes(std::span<const std::byte> piece) = 0;
  /// Says, in place of pieces, that the bytes are those of the file itself from this one on.
  virtual void in_file(std::uint64_t first) = 0;
  /// Reports an array whose element type is not supported, and why; no bytes follow.
  virtual void unread(std::string_view path, const Attributes& attributes,
                      std::string_view why) = 0;
  /// Reports something that is not a value: a group other than chips.
  virtual void ignored(std::string_view name) = 0;
};

}  // namespace shardproof::dump
