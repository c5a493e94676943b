// The oracle's own Philox and FNV-1a against their authors' vectors and another implementation.
#include "oracle/field/detail/philox.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace shardproof::oracle::field {
namespace {

using Words = std::array<std::uint64_t, 4>;

TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox_words({0, 0, 0, 0}, {0, 0}), (Words{0x16554d9eca36314c, 0xdb20fe9d672d0fdc,
                                                       0xd7e772cee186176b, 0x7e68b68aec7ba23b}));
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  EXPECT_EQ(
      philox_words({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
      (Words{0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0}));
  EXPECT_EQ(
      philox_words({0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
                   {0x452821e638d01377, 0xbe5466cf34e90c6c}),
      (Words{0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6}));
}

RC_GTEST_PROP(Philox, AgreesWithRandom123,
              (const Words& counter, std::uint64_t k0, std::uint64_t k1)) {
  const r123::Philox4x64 other;
  const auto words = other({{counter[0], counter[1], counter[2], counter[3]}}, {{k0, k1}});
  RC_ASSERT(philox_words(counter, {k0, k1}) == (Words{words[0], words[1], words[2], words[3]}));
}

TEST(Fnv, GivesTheKnownAnswers) {
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a64("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a64("foobar"), 0x85944171f73967e8U);
  EXPECT_EQ(fnv1a64("\xff"), 0xaf64724c8602eb6eU);  // a byte, not a negative number
}

}  // namespace
}  // namespace shardproof::oracle::field
