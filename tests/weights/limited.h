#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/sanitized.h"

namespace shardproof {

/// Sanitizers take memory of their own, and end the process where they get none.
inline constexpr bool kMemoryCanBeLimited = !kSanitized;

/// A lower limit of this process while it lives, as by ulimit.
class Limited {
 public:
  Limited(__rlimit_resource resource, rlim_t most) : resource_(resource) {
    EXPECT_EQ(::getrlimit(resource_, &whole_), 0);
    rlimit less = whole_;
    less.rlim_cur = most;
    EXPECT_EQ(::setrlimit(resource_, &less), 0);
  }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;
  ~Limited() { ::setrlimit(resource_, &whole_); }

 private:
  __rlimit_resource resource_;
  rlimit whole_{};
};

}  // namespace shardproof
