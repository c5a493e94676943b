// The memory of chips: used again, counted, aligned.
#include "engine/numeric/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace shardproof {
namespace {

TEST(ChipMemory, IsUsedAgainAndCounted) {
  if (!chip_memory::recycles()) GTEST_SKIP() << "the address sanitizer gives every block its own";
  chip_memory::reset_peaks();
  const auto before = chip_memory::usage().live;
  void* first = nullptr;
  for (int i = 0; i < 100; ++i) {
    Buffer<float> a(10000), b(10000);
    if (i == 0) first = a.data();
    EXPECT_TRUE(a.data() == first || b.data() == first);
  }
  const auto usage = chip_memory::usage();
  EXPECT_EQ(usage.live, before);
  EXPECT_GE(usage.peak_live - before, 80000);
  EXPECT_LE(usage.peak_held - before, 80000 * 9 / 8);
}

TEST(ChipMemory, KeepsAnEighthOfThePeakAtMost) {
  chip_memory::reset_peaks();
  const auto before = chip_memory::usage().live;
  for (std::size_t n = 1000; n < 4000000; n += n / 3) const Buffer<char> one(n);
  const auto usage = chip_memory::usage();
  EXPECT_LE(usage.peak_held, usage.peak_live + std::max<std::int64_t>(usage.peak_live / 8, 1 << 20))
      << before;
}

TEST(ChipMemory, BlocksAreApartAndAligned) {
  std::vector<Buffer<unsigned char>> buffers;
  for (std::size_t n = 1; n < 3000; n += 1 + n / 7) buffers.emplace_back(n);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers[i].data()) % 64, 0U);
    std::fill(buffers[i].begin(), buffers[i].end(), static_cast<unsigned char>(i));
  }
  for (std::size_t i = 0; i < buffers.size(); ++i)
    for (unsigned char c : buffers[i]) ASSERT_EQ(c, static_cast<unsigned char>(i));
}

TEST(ChipMemory, FreshBlocksAreFullOfNaNWhereverTheyCameFrom) {
  const auto is_nan = [](const Buffer<unsigned char>& bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](unsigned char c) { return c == 0xFF; });
  };
  const auto use = [](std::size_t n) { Buffer<unsigned char>(n).assign(n, 1); };
  // 1000 and 1024 bytes are blocks of one size: a larger owner follows a smaller one.
  for (const std::size_t smaller : {std::size_t{1}, std::size_t{1000}, std::size_t{100000}}) {
    const std::size_t larger = smaller == 1 ? 64 : smaller + smaller / 42;
    chip_memory::reset_peaks();
    use(smaller);  // written, and returned as it is
    {
      const chip_memory::Hostile fresh(true, false);
      EXPECT_TRUE(is_nan(Buffer<unsigned char>(larger))) << "as the system gave it";
      use(smaller);
      EXPECT_TRUE(is_nan(Buffer<unsigned char>(larger))) << "written by its last owner";
    }
    use(larger);
    const chip_memory::Hostile both(true, true);
    use(smaller);
    EXPECT_TRUE(is_nan(Buffer<unsigned char>(larger))) << "filled when it was returned";
  }
}

TEST(Buffers, AreFiniteIfEachElementIs) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (std::size_t size = 0; size < 40; ++size) {
    Buffer<float> values(size);
    std::fill(values.begin(), values.end(), std::numeric_limits<float>::max());
    EXPECT_TRUE(all_finite(values)) << size;
    for (float& v : values)
      for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                              -std::numeric_limits<float>::quiet_NaN()}) {
        const float before = std::exchange(v, bad);
        EXPECT_FALSE(all_finite(values)) << size;
        v = before;
      }
  }
}

}  // namespace
}  // namespace shardproof
