#include "engine/numeric/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace shardproof {
namespace {

// Every item exactly once, whatever the pool and however many items; the writes are plain, so that
// a thread sanitizer sees whether the caller may read them.
void expect_each_once(Threads& threads, std::int64_t n) {
  std::vector<int> calls(static_cast<std::size_t>(n), 0);
  threads.for_each(n, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
  EXPECT_EQ(calls, std::vector<int>(calls.size(), 1)) << n << " items";
}

TEST(Threads, CallEachItemOnce) {
  for (int count : {1, 2, 3, 8}) {
    Threads threads(count);
    for (std::int64_t n : {0, 1, 2, 3, 7, 8, 9, 1000}) expect_each_once(threads, n);
  }
}

TEST(Threads, ArePoolsThatAreUsedAgainAndAgain) {
  Threads threads(3);
  std::vector<std::int64_t> sum(5, 0);  // of one item's own, carried from one call to the next
  for (int round = 0; round < 2000; ++round)
    threads.for_each(5, [&](std::int64_t i) { sum[static_cast<std::size_t>(i)] += i; });
  EXPECT_EQ(sum, (std::vector<std::int64_t>{0, 2000, 4000, 6000, 8000}));
}

TEST(Threads, HandTheFirstExceptionToTheCallerAndStayUsable) {
  for (int count : {1, 2, 4}) {
    Threads threads(count);
    for (int round = 0; round < 50; ++round) {
      const auto one_throws = [](std::int64_t i) {
        if (i == 5) throw std::runtime_error("item 5");
      };
      try {
        threads.for_each(9, one_throws);
        FAIL() << "nothing thrown with " << count << " threads";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "item 5");
      }
      const auto all_throw = [](std::int64_t i) { throw std::runtime_error(std::to_string(i)); };
      EXPECT_THROW(threads.for_each(9, all_throw), std::runtime_error);
      expect_each_once(threads, 9);
    }
  }
}

TEST(Threads, NestPoolsWithinPools) {
  Threads outer(3);
  std::vector<std::int64_t> sums(6, 0);
  outer.for_each(6, [&](std::int64_t i) {
    Threads inner(2);
    std::vector<std::int64_t> squares(20, 0);
    inner.for_each(20, [&](std::int64_t j) { squares[static_cast<std::size_t>(j)] = i * j; });
    for (std::int64_t s : squares) sums[static_cast<std::size_t>(i)] += s;
  });
  EXPECT_EQ(sums, (std::vector<std::int64_t>{0, 190, 380, 570, 760, 950}));
}

TEST(Threads, WorkAtTheSameTime) {
  // Two items that wait for each other end only if two threads run them.
  Threads threads(2);
  std::atomic<int> arrived{0};
  threads.for_each(2, [&](std::int64_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(Threads, EndWithoutEverHavingWorked) {
  for (int count : {1, 2, 16}) const Threads threads(count);
}

}  // namespace
}  // namespace shardproof
