#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof {

/// How many tokens of the prompt each row of a batch has: all, as many as a list says over and
/// over, or as many as the seed draws (docs/spec.md section 2.7).
struct RowLengths {
  bool ragged = false;              ///< drawn
  std::vector<std::int64_t> cycle;  ///< row r has cycle[r mod its size]; empty: the whole prompt

  /// Whether rows may be shorter than the prompt.
  bool given() const { return ragged || !cycle.empty(); }
  /// "ragged" or "7,3,5,1"; empty where every row has the whole prompt.
  std::string to_string() const;
  bool operator==(const RowLengths&) const = default;
};

/// Reads "ragged" or "7,3,5,1". Throws Error("case_lengths", ...) on anything else.
RowLengths parse_row_lengths(std::string_view text);

/// The lengths of the rows of a batch, each from 1 to `prompt`: of ragged ones row r has
/// P + 1 + range(word 0 of words(seed, "length", r), 0, prompt − P − 1), P = `prefix` being the
/// length of a prefix below `prompt`. Throws Error("case_lengths", ...)
/// where a length is above the prompt, or there are more of them than rows.
std::vector<std::int64_t> lengths_of_rows(const RowLengths& lengths, std::uint64_t seed,
                                          std::int64_t batch, std::int64_t prompt,
                                          std::int64_t prefix = 0);

}  // namespace shardproof
