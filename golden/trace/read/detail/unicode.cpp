#include "golden/trace/read/detail/unicode.h"

#include <fmt/format.h>

#include <cstdint>

#include "weights/base/error.h"

namespace shardproof::dump {
namespace {

void append(std::string& text, std::uint32_t c) {
  const auto byte = [&](std::uint32_t head, int shift, std::uint32_t mask) {
    text.push_back(static_cast<char>(head | (c >> shift & mask)));
  };
  if (c < 0x80) {
    byte(0, 0, 0x7F);
  } else if (c < 0x800) {
    byte(0xC0, 6, 0x1F);
  } else if (c < 0x10000) {
    byte(0xE0, 12, 0x0F);
    byte(0x80, 6, 0x3F);
  } else {
    byte(0xF0, 18, 0x07);
    byte(0x80, 12, 0x3F);
    byte(0x80, 6, 0x3F);
  }
  if (c >= 0x80) byte(0x80, 0, 0x3F);
}

}  // namespace

std::string utf8_of_ucs4(std::span<const std::byte> bytes, bool big_endian) {
  std::string text;
  for (; bytes.size() >= 4; bytes = bytes.subspan(4)) {
    std::uint32_t c = 0;
    for (std::size_t i = 0; i < 4; ++i)
      c = c << 8 | std::to_integer<std::uint32_t>(bytes[big_endian ? i : 3 - i]);
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
      throw Error(
          "dump_format",
          fmt::format("its member \"shardproof\" holds {:#x}, which is not a character", c));
    append(text, c);
  }
  return text;
}

}  // namespace shardproof::dump
