#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardproof {

/// 64 bits of FNV-1a.
std::uint64_t fnv1a(std::string_view text);
/// Returns the words of the stream whose name has this hash.
std::array<std::uint32_t, 4> philox_words(std::uint64_t seed, std::uint64_t hash,
                                          std::uint64_t index);

/// Words of kPhiloxBlocks neighbouring indices.
inline constexpr std::size_t kPhiloxBlocks = 16;
using PhiloxRun = std::array<std::uint32_t, 4 * kPhiloxBlocks>;
/// Returns philox_words of each index from `first` on, one after the other.
PhiloxRun philox_run(std::uint64_t seed, std::uint64_t hash, std::uint64_t first);

}  // namespace shardproof
