#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace shardproof::dump {

/// Characters of four bytes each, as NumPy keeps texts, in UTF-8. Throws Error("dump_format", ...)
/// on what is no character.
std::string utf8_of_ucs4(std::span<const std::byte> bytes, bool big_endian);

}  // namespace shardproof::dump
