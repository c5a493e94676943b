#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof {

/// Method of choosing a token from the logits of its row (docs/spec.md section 2.10).
enum class Sample { greedy, random };

/// Sampling options; all but the first apply to sample=random only.
struct Sampling {
  Sample sample = Sample::greedy;
  double temperature = 1.0;
  std::int64_t top_k = 0;  ///< keeps at least this many of the largest; 0: all
  double top_p = 1.0;      ///< keeps at least this share of the sum; 1: all
  bool operator==(const Sampling&) const = default;
};

/// Identifies the random number that draws a token, independently of the row's place in a batch and
/// of the pass that computes the token.
struct Draw {
  std::int64_t row = 0;    ///< 0-based line of the row's file; in a case the row number
  std::int64_t token = 0;  ///< 0 for the first token generated in the row
  bool operator==(const Draw&) const = default;
};

/// Inputs of sampling in one pass.
struct Draws {
  Sampling sampling;
  std::uint64_t seed = 1;
  std::vector<Draw> rows;  ///< one per row of the batch
  double unit = 1.0;       ///< factor of a logit, in f64: ln 2 if logits are in base 2

  /// Returns the draw of a row; without a list, its index and the first token.
  Draw of(std::size_t row) const {
    return row < rows.size() ? rows[row] : Draw{static_cast<std::int64_t>(row), 0};
  }
  bool operator==(const Draws&) const = default;
};

/// Rounds of a threshold search, one per bit that the f32 of a number from 0 to 1 may have set; and
/// 16-bit words of an exact sum of such numbers, in units of 2^-149.
inline constexpr int kSearchRounds = 30;
inline constexpr int kSumWords = 12;

/// Returns the sampling keys of a case line, in print order.
std::span<const std::string_view> sampling_keys();

/// Reads Sampling from a case line; given(key) returns the word, or null if the key is absent. Any
/// key of random sampling implies sample=random. Throws Error("case_sampling", ...), naming what is
/// legal, on a word that is not a choice, a number out of range, or a further key with
/// sample=greedy.
Sampling read_sampling(const std::function<const std::string*(std::string_view key)>& given);

/// Prints the non-default options, each after a space: " sample=random top_p=0.9".
std::string print_sampling(const Sampling& sampling);

/// Throws Error("case_sampling", ...) unless the options are in range (top_k for a vocabulary of V)
/// and sample=greedy has no others.
void validate(const Sampling& sampling, std::int64_t V);

/// Returns "greedy" or "random".
std::string_view to_string(Sample sample);

}  // namespace shardproof
