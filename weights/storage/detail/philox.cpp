#include "weights/storage/detail/philox.h"

#include <Random123/philox.h>

#include "weights/random/detail/kernels.h"

namespace shardproof {

static_assert(kPhiloxMultipliers[0] == PHILOX_M4x32_0 && kPhiloxMultipliers[1] == PHILOX_M4x32_1);
static_assert(kPhiloxGrowth[0] == PHILOX_W32_0 && kPhiloxGrowth[1] == PHILOX_W32_1);
static_assert(kPhiloxRounds == PHILOX4x32_DEFAULT_ROUNDS);

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

}  // namespace shardproof
