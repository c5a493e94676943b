#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardproof::tools {

/// The characters of a line that fits any terminal.
inline constexpr std::size_t kWidth = 80;

/// Breaks `text` at spaces into lines of at most `width`, each but the first after `indent`.
inline std::string wrapped(std::string text, std::size_t width, std::string_view indent) {
  std::string out;
  while (text.size() > width) {
    const std::size_t at = text.rfind(' ', width);
    if (at == std::string::npos || at == 0) break;
    out += text.substr(0, at) + "\n" + std::string(indent);
    text = text.substr(at + 1);
  }
  return out + text;
}

}  // namespace shardproof::tools
