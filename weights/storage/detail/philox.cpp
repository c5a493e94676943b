#include "weights/storage/detail/philox.h"

#include <Random123/philox.h>

namespace shardproof {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::array<std::uint32_t, 4> philox_words(std::uint64_t seed, std::uint64_t hash,
                                          std::uint64_t index) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const r123::Philox4x32::ctr_type counter{{low(index), high(index), low(hash), high(hash)}};
  const r123::Philox4x32::key_type key{{low(seed), high(seed)}};
  const r123::Philox4x32::ctr_type words = r123::Philox4x32{}(counter, key);
  return {words[0], words[1], words[2], words[3]};
}

// Random123 computes one index; loops over several are what compilers make vectors of.
PhiloxRun philox_run(std::uint64_t seed, std::uint64_t hash, std::uint64_t first) {
  using Lane = std::array<std::uint32_t, kPhiloxBlocks>;
  Lane a, b, c, d;
  for (std::size_t i = 0; i < kPhiloxBlocks; ++i) {
    a[i] = static_cast<std::uint32_t>(first + i);
    b[i] = static_cast<std::uint32_t>((first + i) >> 32);
    c[i] = static_cast<std::uint32_t>(hash);
    d[i] = static_cast<std::uint32_t>(hash >> 32);
  }
  auto key0 = static_cast<std::uint32_t>(seed);
  auto key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < PHILOX4x32_DEFAULT_ROUNDS; ++round) {
    for (std::size_t i = 0; i < kPhiloxBlocks; ++i) {
      const std::uint64_t p = std::uint64_t{PHILOX_M4x32_0} * a[i];
      const std::uint64_t q = std::uint64_t{PHILOX_M4x32_1} * c[i];
      a[i] = static_cast<std::uint32_t>(q >> 32) ^ b[i] ^ key0;
      b[i] = static_cast<std::uint32_t>(q);
      c[i] = static_cast<std::uint32_t>(p >> 32) ^ d[i] ^ key1;
      d[i] = static_cast<std::uint32_t>(p);
    }
    key0 += PHILOX_W32_0;
    key1 += PHILOX_W32_1;
  }
  PhiloxRun words;
  for (std::size_t i = 0; i < kPhiloxBlocks; ++i) {
    words[4 * i] = a[i], words[4 * i + 1] = b[i];
    words[4 * i + 2] = c[i], words[4 * i + 3] = d[i];
  }
  return words;
}

}  // namespace shardproof
