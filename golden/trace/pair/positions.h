#pragma once

#include <vector>

#include "golden/trace/pair/pair.h"
#include "golden/trace/pair/places.h"
#include "golden/trace/pair/tokens.h"
#include "golden/trace/pair/whole_value.h"

namespace shardproof::dump {

/// The logits of two traces of one pass, [BV], and of each row of A the row of B.
struct LogitsOfBoth {
  std::string pass;  ///< of A
  WholeValue a, b;
  std::vector<std::int64_t> row_of_b;  ///< -1: none, or of other tokens
  bool base2 = false;
};

/// Returns how far the probabilities of each row are apart, with what runs in random orders move.
std::vector<PositionOfLogits> positions_of(const LogitsOfBoth& logits, const Wander& a,
                                           const Wander& b, const std::string& pass_of_b);

/// Fills in the margins of a token that differs, given the logits that it follows from.
void hold_against_logits(Parting& parting, const LogitsOfBoth& logits, const Wander& a,
                         const Wander& b, const std::string& pass_of_b);

}  // namespace shardproof::dump
