#pragma once

#include <cstdint>
#include <string>

#include "engine/shards/field.h"
#include "oracle/field/answer.h"
#include "weights/base/error.h"

namespace shardproof {

/// What a run of the field regime shows that found every value equal (docs/field.md section 2).
struct FieldEquality {
  /// log2 of the bound on the probability, over the seed, that a program with another formula is
  /// found equal: from what engine and oracle asked for, and never below −60, as a seed has 64
  /// bits.
  double log2_miss = 0.0;
  double log2_counted = 0.0;          ///< the same without that end
  std::int64_t degree = 0;            ///< d
  std::int64_t applications = 0;      ///< of functions, in both programs
  std::int64_t ids_met = 0, ids = 0;  ///< looked up in the passes, of the vocabulary
  /// No two tokens of the run have one id. Else it speaks of these ids only: a fault that gives a
  /// token another's values, where both have one id and all before them, does not show.
  bool distinct_ids = true;
  std::uint64_t seed = 0;  ///< of the field's numbers

  /// The whole number n of "probability < 2^-n".
  int exponent() const;
  /// "equal for all inputs, as formulas: ..."; without distinct ids "equal for these ids, ...".
  std::string to_string() const;
};

/// What one run of a program, or of several programs, asked for.
void add_counts(FieldCounts& counts, const FieldCounts& more);
FieldCounts counts_of(const oracle::field::Answer& answer);

/// The bound of section 2: ε = (1 + Σ_f N_f(N_f+1)/2)·(d/p)^lanes, as log2 ε, once for
/// each draw; `counts` of both programs together.
FieldEquality field_equality(const FieldSetting& setting, const FieldCounts& counts);

}  // namespace shardproof
