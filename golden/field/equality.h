#pragma once

#include <cstdint>
#include <string>

#include "engine/field.h"
#include "oracle/field/answer.h"
#include "weights/error.h"

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

  /// The whole number n of "probability < 2^-n".
  int exponent() const;
  /// "equal for all inputs, as formulas: ...".
  std::string to_string() const;
};

/// The bound of section 2: ε = (1 + Σ_f N_f(N_f+1)/2)·(d/p)^lanes, as log2 ε, once for
/// each draw; N_f of both programs.
/// Of `engine` and `oracle` what each of them counted.
FieldEquality field_equality(const FieldSetting& setting, const FieldCounts& engine,
                             const oracle::field::Answer& oracle);

}  // namespace shardproof
