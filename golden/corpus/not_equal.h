#pragma once

#include <stdexcept>

namespace shardproof::corpus {

/// A sharded run or a collective of the engine has other bits than the golden that was to be
/// made: a finding, and no caller's mistake.
class NotEqual : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace shardproof::corpus
