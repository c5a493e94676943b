#pragma once

#include <cstdint>
#include <string>

#include "engine/shards/field.h"
#include "oracle/field/answer.h"
#include "weights/base/error.h"

namespace shardproof {

/// The guarantee of a field run that found every value equal (docs/field.md section 2).
struct FieldEquality {
  /// log2 of the bound on the probability, over the seed, that a program with another formula is
  /// found equal, from the counts of engine and oracle; at least −60, as a seed has 64 bits.
  double log2_miss = 0.0;
  double log2_counted = 0.0;          ///< log2_miss without the limit of −60
  std::int64_t degree = 0;            ///< d
  std::int64_t applications = 0;      ///< function applications in both programs
  std::int64_t ids_met = 0, ids = 0;  ///< ids looked up in the passes; ids of the vocabulary
  /// True if no two tokens of the run have the same id. Otherwise the result holds for these ids
  /// only: giving a token another's values goes unnoticed if their ids, and all before, agree.
  bool distinct_ids = true;
  std::uint64_t seed = 0;  ///< seed of the field's numbers

  /// Returns the whole number n of "probability < 2^-n".
  int exponent() const;
  /// Returns "equal for all inputs, as formulas: ..."; without distinct ids "equal for these ids,
  /// ...".
  std::string to_string() const;
};

/// add_counts accumulates the counts of further runs; counts_of returns those of the oracle's.
void add_counts(FieldCounts& counts, const FieldCounts& more);
FieldCounts counts_of(const oracle::field::Answer& answer);

/// Returns the bound of docs/field.md section 2: ε = (1 + Σ_f N_f(N_f+1)/2)·(d/p)^lanes, as log2 ε,
/// once for each draw; `counts` covers both programs.
FieldEquality field_equality(const FieldSetting& setting, const FieldCounts& counts);

}  // namespace shardproof
