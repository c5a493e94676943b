#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace shardproof {

#ifdef __has_feature  // clang++; g++ defines __SANITIZE_ADDRESS__
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARDPROOF_SANITIZED_TEST
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARDPROOF_SANITIZED_TEST
#endif

/// Sanitizers take memory of their own, and end the process where they get none.
#ifdef SHARDPROOF_SANITIZED_TEST
inline constexpr bool kMemoryCanBeLimited = false;
#else
inline constexpr bool kMemoryCanBeLimited = true;
#endif

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
