#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "oracle/model/oracle.h"

namespace shardproof {

class OracleMemo;
struct RunPlan;

/// The distance of a base-2 model from the plain one that it was folded from: reported, never
/// judged. A folded factor rounds elsewhere, so bits differ and a token may.
struct FromPlain {
  double logits = 0.0;  ///< max |difference| in base e, over the rms of the plain logits
  std::int64_t equal_tokens = 0, tokens = 0;
  std::string apart;  ///< first pass that samples another token; "" if none

  /// Returns for example "from the plain model (not judged): logits 8.0e-07; 72 of 72 tokens
  /// agree".
  std::string to_string() const;
  void add(const FromPlain& other);
};

/// Compares a plan with generated weights, whose oracle answer is `folded`, with the plain model,
/// up to and including the first pass that samples another token. Returns nothing for a plain
/// model, or if the plain model's run ends with a value that is not finite.
std::optional<FromPlain> from_plain(const RunPlan& plan, const oracle::Answer& folded,
                                    OracleMemo& memo, int threads = 1);

}  // namespace shardproof
