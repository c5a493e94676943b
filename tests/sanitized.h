#pragma once

// A build under a sanitizer runs several times slower. A test that is long there works on less of
// what it has, and says so in its output.
#include <iostream>
#include <string_view>

#ifdef __has_feature  // clang++; g++ defines __SANITIZE_ADDRESS__
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARDPROOF_SANITIZED_TEST
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARDPROOF_SANITIZED_TEST
#endif

namespace shardproof {

#ifdef SHARDPROOF_SANITIZED_TEST
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// How many of `all` a test works on: all, under a sanitizer `fewer`.
template <class Number>
Number fewer_if_sanitized(Number all, Number fewer, std::string_view what) {
  if (!kSanitized) return all;
  std::cout << "only " << fewer << " of " << all << " " << what << ", under a sanitizer\n";
  return fewer;
}

/// Whether a test takes its next step: always, under a sanitizer one time in n.
class OneInN {
 public:
  OneInN(int n, std::string_view steps) : n_(kSanitized ? n : 1) {
    if (kSanitized) std::cout << "only one in " << n << " " << steps << ", under a sanitizer\n";
  }
  bool operator()() { return turn_++ % n_ == 0; }
  /// Of numbered steps, so that a test can say which.
  bool operator()(int step) const { return step % n_ == 0; }

 private:
  int n_;
  int turn_ = 0;
};

}  // namespace shardproof
