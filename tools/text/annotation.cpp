#include "tools/text/annotation.h"

#include <fmt/format.h>

namespace shardproof::tools {
namespace {

/// Escapes what a workflow command reads in a message, or also what it reads in a property.
std::string command_text(std::string_view text, bool property) {
  std::string out;
  for (const char c : text)
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      out += c;
  return out;
}

}  // namespace

std::string annotation(std::string_view title, std::string_view message) {
  return fmt::format("::error title={}::{}\n", command_text(title, true),
                     command_text(message, false));
}

}  // namespace shardproof::tools
