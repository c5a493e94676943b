#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof {

/// Prefixes shared by the rows of a batch: `rows` prefixes of `length` tokens each, one of which
/// each row continues. They are prefilled once, at batch `rows`, into caches of their own, which
/// attention reads besides the rows' caches (docs/spec.md section 2.11).
struct SharedPrefix {
  std::int64_t length = 0;  ///< P, the positions of every prefix; 0 without prefixes
  std::int64_t rows = 0;    ///< N, how many prefixes there are

  bool given() const { return rows > 0; }
  /// Returns the prefix of row `row` in a batch of `batch` rows: neighbouring rows share one.
  std::int64_t of_row(std::int64_t row, std::int64_t batch) const { return row * rows / batch; }
  /// Returns the first row of the batch that has the prefix.
  std::int64_t first_row(std::int64_t prefix, std::int64_t batch) const {
    return (prefix * batch + rows - 1) / rows;
  }
  /// Prints "5:3"; empty without prefixes.
  std::string to_string() const;
  bool operator==(const SharedPrefix&) const = default;
};

/// Parses "5:3", 3 prefixes of 5 tokens. Throws Error("case_prefix", ...) on anything else.
SharedPrefix parse_prefix(std::string_view text);

/// Throws Error("case_prefix", ...) if there are more prefixes than rows, or if the prefix is not
/// shorter than the shortest row: every row needs a token of its own.
void require_prefix(const SharedPrefix& prefix, std::int64_t batch, std::int64_t shortest);

}  // namespace shardproof
