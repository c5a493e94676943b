#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof {

/// What the rows of a batch have in common at their beginnings: `rows` prefixes of `length` tokens
/// each, of which a row has one. They are prefilled once, at batch `rows`, into caches of their
/// own, which the attention of the batch's rows reads besides theirs (docs/spec.md section 2.11).
struct SharedPrefix {
  std::int64_t length = 0;  ///< P, the positions of every prefix; 0 without prefixes
  std::int64_t rows = 0;    ///< N, how many prefixes there are

  bool given() const { return rows > 0; }
  /// Which prefix row `row` of a batch of `batch` rows has: neighbours have the same.
  std::int64_t of_row(std::int64_t row, std::int64_t batch) const { return row * rows / batch; }
  /// The first row of the batch that has the prefix.
  std::int64_t first_row(std::int64_t prefix, std::int64_t batch) const {
    return (prefix * batch + rows - 1) / rows;
  }
  /// "5:3"; empty without prefixes.
  std::string to_string() const;
  bool operator==(const SharedPrefix&) const = default;
};

/// Reads "5:3", 3 prefixes of 5 tokens. Throws Error("case_prefix", ...) on anything else.
SharedPrefix parse_prefix(std::string_view text);

/// Throws Error("case_prefix", ...) where there are more prefixes than rows, or one is as long as
/// the shortest row or longer: every row has a token of its own.
void require_prefix(const SharedPrefix& prefix, std::int64_t batch, std::int64_t shortest);

}  // namespace shardproof
