#pragma once

#include <stdexcept>

namespace shardproof::corpus {

/// Thrown if a sharded run or a collective of the engine has other bits than the golden to be made:
/// a finding, not a caller's mistake.
class NotEqual : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace shardproof::corpus
