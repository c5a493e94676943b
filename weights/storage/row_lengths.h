#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof {

/// Prompt tokens of each row of a batch: all, a list repeated cyclically, or drawn from the seed
/// (docs/spec.md section 2.7).
struct RowLengths {
  bool ragged = false;              ///< lengths are drawn from the seed
  std::vector<std::int64_t> cycle;  ///< row r has cycle[r mod its size]; empty: the whole prompt

  /// Returns whether rows may be shorter than the prompt.
  bool given() const { return ragged || !cycle.empty(); }
  /// Prints "ragged" or "7,3,5,1"; empty if every row has the whole prompt.
  std::string to_string() const;
  bool operator==(const RowLengths&) const = default;
};

/// Parses "ragged" or "7,3,5,1". Throws Error("case_lengths", ...) on anything else.
RowLengths parse_row_lengths(std::string_view text);

/// Returns the length of each row, from 1 to `prompt`. A ragged row r has P + 1 + range(word 0 of
/// words(seed, "length", r), 0, prompt − P − 1), where P = `prefix` < `prompt` is the length of a
/// prefix. Throws Error("case_lengths", ...) if a length exceeds the prompt, or there are more
/// lengths than rows.
std::vector<std::int64_t> lengths_of_rows(const RowLengths& lengths, std::uint64_t seed,
                                          std::int64_t batch, std::int64_t prompt,
                                          std::int64_t prefix = 0);

}  // namespace shardproof
