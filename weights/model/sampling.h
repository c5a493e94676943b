#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof {

/// How a token is chosen from the logits of its row (docs/spec.md section 2.10).
enum class Sample { greedy, random };

/// The choices of sampling; all but the first are those of sample=random.
struct Sampling {
  Sample sample = Sample::greedy;
  double temperature = 1.0;
  std::int64_t top_k = 0;  ///< how many of the largest are kept at least; 0: all
  double top_p = 1.0;      ///< what share of the sum is kept at least; 1: all
  bool operator==(const Sampling&) const = default;
};

/// Which random number a token is drawn by: the row's own and the token's place in the row. Neither
/// says where in a batch the row stands, nor in which pass the token is made.
struct Draw {
  std::int64_t row = 0;    ///< 0-based line of the row's file; in a case the row's number
  std::int64_t token = 0;  ///< 0 for the first token that the row gets
  bool operator==(const Draw&) const = default;
};

/// What a pass that samples draws by.
struct Draws {
  Sampling sampling;
  std::uint64_t seed = 1;
  std::vector<Draw> rows;  ///< of every row of the batch
  double unit = 1.0;       ///< of a logit, in f64: ln 2 where logits are in base 2

  /// Without a list rows count from 0, and each draws its first token.
  Draw of(std::size_t row) const {
    return row < rows.size() ? rows[row] : Draw{static_cast<std::int64_t>(row), 0};
  }
  bool operator==(const Draws&) const = default;
};

/// The rounds of a threshold search: one for each bit that the f32 of a number from 0 to 1 may have
/// set. And the words of an exact sum of such numbers, of 16 bits each, in units of 2^-149.
inline constexpr int kSearchRounds = 30;
inline constexpr int kSumWords = 12;

/// The keys of a case line, in the order in which it prints them.
std::span<const std::string_view> sampling_keys();

/// Of a case line's words, null where the key is not given. A key of random sampling alone implies
/// sample=random. Throws Error("case_sampling", ...) on a word that is no choice, a number out of
/// range, or a key beside sample=greedy, naming what is legal.
Sampling read_sampling(const std::function<const std::string*(std::string_view key)>& given);

/// " sample=random top_p=0.9": what is not the default, each after a space.
std::string print_sampling(const Sampling& sampling);

/// Throws Error("case_sampling", ...) unless the numbers are in range, top_k for a vocabulary of V.
void validate(const Sampling& sampling, std::int64_t V);

/// "greedy", "random".
std::string_view to_string(Sample sample);

}  // namespace shardproof
