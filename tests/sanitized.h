#pragma once

// A build under a sanitizer runs several times slower. A test that is long there works on less of
// what it has, and says so in its output; without one, too, where the environment asks for it.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
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

/// Of how many steps of a long test one is taken in a build without sanitizers: all, or as
/// SHARDPROOF_TEST_STRIDE says.
inline int test_stride() {
  const char* const given = std::getenv("SHARDPROOF_TEST_STRIDE");
  const int stride = given == nullptr ? 1 : std::stoi(given);
  if (stride < 1) throw std::invalid_argument("SHARDPROOF_TEST_STRIDE");
  return stride;
}

/// Whether a test takes its next step: under a sanitizer one time in n, otherwise by test_stride().
class OneInN {
 public:
  OneInN(int n, std::string_view steps) : n_(kSanitized ? n : test_stride()) {
    if (!all())
      std::cout << "only one in " << n_ << " " << steps
                << (kSanitized ? ", under a sanitizer\n" : ", as SHARDPROOF_TEST_STRIDE says\n");
  }
  bool all() const { return n_ == 1; }
  bool operator()() { return (*this)(turn_++); }
  /// Of numbered steps, so that a test can say which. They are taken by multiples of the golden
  /// ratio, so that of inner loops, whatever their lengths, each turn is among them.
  bool operator()(int step) const {
    return all() || static_cast<std::uint32_t>(step) * 2654435769U <
                        std::numeric_limits<std::uint32_t>::max() / static_cast<std::uint32_t>(n_);
  }

 private:
  int n_;
  int turn_ = 0;
};

}  // namespace shardproof
