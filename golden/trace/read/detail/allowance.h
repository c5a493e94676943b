#pragma once

#include <cstdint>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof::dump {

/// A text in a trace, a name too, is at most this long.
constexpr std::size_t kLongestText = std::size_t{64} << 10;

/// How many bytes may still be taken from a file. Child and parent each have one of their own.
class Allowance {
 public:
  explicit Allowance(std::uint64_t bytes) : whole_(bytes), left_(bytes) {}

  std::uint64_t whole() const { return whole_; }
  std::uint64_t left() const { return left_; }

  /// Throws Error("dump_size", ...) if fewer are left; `what` declares them: "value \"a\"".
  void take(std::uint64_t bytes, std::string_view what);

 private:
  std::uint64_t whole_, left_;
};

}  // namespace shardproof::dump
