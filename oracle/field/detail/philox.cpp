#include "oracle/field/detail/philox.h"

namespace shardproof::oracle::field {

namespace {

__extension__ typedef unsigned __int128 Wide;

}  // namespace

std::array<std::uint64_t, 4> philox_words(std::array<std::uint64_t, 4> counter,
                                          std::array<std::uint64_t, 2> key) {
  constexpr Wide kFactor0 = 0xD2E7470EE14C6C93U, kFactor1 = 0xCA5A826395121157U;
  constexpr std::uint64_t kStep0 = 0x9E3779B97F4A7C15U, kStep1 = 0xBB67AE8584CAA73BU;
  for (int round = 0; round < 10; ++round) {
    const Wide product0 = kFactor0 * counter[0];
    const Wide product1 = kFactor1 * counter[2];
    counter = {static_cast<std::uint64_t>(product1 >> 64) ^ counter[1] ^ key[0],
               static_cast<std::uint64_t>(product1),
               static_cast<std::uint64_t>(product0 >> 64) ^ counter[3] ^ key[1],
               static_cast<std::uint64_t>(product0)};
    key = {key[0] + kStep0, key[1] + kStep1};
  }
  return counter;
}

std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

}  // namespace shardproof::oracle::field
