#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "oracle/model/oracle.h"

namespace shardproof {

class OracleMemo;
struct RunPlan;

/// How far a base-2 model is from the plain one that it was folded from: reported, never judged. A
/// factor that is folded rounds elsewhere, so that their bits differ and a token may.
struct FromPlain {
  double logits =
      0.0;  ///< the largest |difference| in base e, over the plain ones' root mean square
  std::int64_t equal_tokens = 0, tokens = 0;
  std::string apart;  ///< the first pass that samples another token; "" if none does

  /// "from the plain model (not judged): logits 8.0e-07; 72 of 72 tokens agree".
  std::string to_string() const;
  void add(const FromPlain& other);
};

/// Of a plan with generated weights, whose oracle's answer is `folded`: up to and including the
/// first pass that samples another token than the plain model does. None of a plain model, nor
/// where the plain model's run ends by a value that is not finite.
std::optional<FromPlain> from_plain(const RunPlan& plan, const oracle::Answer& folded,
                                    OracleMemo& memo, int threads = 1);

}  // namespace shardproof
