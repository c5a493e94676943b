#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardproof::oracle::field {

/// Philox4x64 with 10 rounds (Salmon et al., SC 2011).
std::array<std::uint64_t, 4> philox_words(std::array<std::uint64_t, 4> counter,
                                          std::array<std::uint64_t, 2> key);

/// 64-bit FNV-1a hash of the bytes of `text`.
std::uint64_t fnv1a64(std::string_view text);

}  // namespace shardproof::oracle::field
