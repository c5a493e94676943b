#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "golden/trace/claim/claim.h"
#include "golden/trace/reference/reference.h"
#include "golden/trace/value/dumped_value.h"

namespace shardproof::dump {

/// Returns whether a value of keys has a number for each query and slot, also of slots that the
/// query does not see.
bool has_unseen_slots(std::string_view name);

/// The slots of score, exp and probs that no query sees, if the trace declares their contents
/// meaningless (`masked`).
class MaskedSlots {
 public:
  MaskedSlots(const DumpedValue& dumped, const Claim& claim, Reference& reference);
  /// `place`: row-major element of the model's value.
  bool operator()(std::int64_t place) const {
    return !masked_.empty() && masked_[static_cast<std::size_t>(place)];
  }

 private:
  std::vector<bool> masked_;
};

}  // namespace shardproof::dump
