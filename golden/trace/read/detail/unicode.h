#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace shardproof::dump {

/// Converts characters of four bytes each, NumPy's form of texts, to UTF-8. Throws
/// Error("dump_format", ...) for an invalid character.
std::string utf8_of_ucs4(std::span<const std::byte> bytes, bool big_endian);

}  // namespace shardproof::dump
