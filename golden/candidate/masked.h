#pragma once

#include <cstdint>
#include <vector>

#include "golden/candidate/claim.h"
#include "golden/candidate/held.h"
#include "golden/candidate/reference.h"

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
