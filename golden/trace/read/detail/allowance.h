#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof::dump {

/// Longest text in a trace, including names.
constexpr std::size_t kLongestText = std::size_t{64} << 10;

/// Bytes that may still be taken from a file. Child and parent have one each.
class Allowance {
 public:
  explicit Allowance(std::uint64_t bytes) : whole_(bytes), left_(bytes) {}

  std::uint64_t whole() const { return whole_; }

  /// Throws Error("dump_size", ...) if fewer are left; `what` names their origin: "value \"a\"".
  void take(std::uint64_t bytes, std::string_view what) {
    if (bytes > left_)
      throw Error("dump_size",
                  fmt::format("{} takes {} bytes where {} are left of {}: more than 64 MiB and 8 "
                              "times the file are not read, leave the compression out",
                              what, bytes, left_, whole_));
    left_ -= bytes;
  }

 private:
  std::uint64_t whole_, left_;
};

}  // namespace shardproof::dump
