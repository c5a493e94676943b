#pragma once

#include <map>
#include <string>

#include "golden/trace/verdict/detail/expectations.h"

namespace shardproof::dump {

/// Judges the ids, tokens and what leads to them: those whose bits are not known in advance.
class TokensOfTrace {
 public:
  TokensOfTrace(const Claim& claim, Reference& reference, Expectations& expectations)
      : claim_(claim), reference_(reference), expectations_(expectations) {}

  /// Keeps the tokens of a pass, for the ids of later ones.
  void keep(const DumpedValue& dumped);
  /// The ids of a decode step must be the tokens of the preceding pass.
  Row ids(const DumpedValue& dumped, Row row);
  /// Judges whether each token may be the largest logit, the first of equals; indices likewise,
  /// within their block.
  Row chosen(const DumpedValue& dumped, Row row);
  /// Random sampling determines tokens from f32 logits, bit for bit; logits known less exactly
  /// determine nothing.
  Row drawn(const DumpedValue& dumped, Row row);

 private:
  Tensor before(const PassPlan& pass, std::string& why) const;

  const Claim& claim_;
  Reference& reference_;
  Expectations& expectations_;
  std::map<std::string, Tensor> tokens_;  // by pass
};

}  // namespace shardproof::dump
