#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardproof {

/// 64 bits of FNV-1a.
std::uint64_t fnv1a(std::string_view text);
/// Returns the words of the stream whose name has this hash: by Random123, which the kernels of
/// weights/random are tested against.
std::array<std::uint32_t, 4> philox_words(std::uint64_t seed, std::uint64_t hash,
                                          std::uint64_t index);

}  // namespace shardproof
