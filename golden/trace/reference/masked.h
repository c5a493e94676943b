#pragma once

#include <cstdint>
#include <vector>

#include "golden/trace/claim/claim.h"
#include "golden/trace/reference/reference.h"
#include "golden/trace/value/held.h"

namespace shardproof::candidate {

/// Which slots of a value no query sees: of score, exp and probs, where the trace says that what
/// stands there means nothing (`masked`).
class Masked {
 public:
  Masked(const Held& held, const Claim& claim, Reference& reference);
  /// `place`: an element of the model's value, row-major.
  bool operator()(std::int64_t place) const {
    return !masked_.empty() && masked_[static_cast<std::size_t>(place)];
  }

 private:
  std::vector<bool> masked_;
};

}  // namespace shardproof::candidate
