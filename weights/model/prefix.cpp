#include "weights/model/prefix.h"

#include <fmt/format.h>

#include <charconv>

namespace shardproof {
namespace {

/// Parses a number of at least 1; returns 0 for anything else.
std::int64_t count(std::string_view text) {
  constexpr std::int64_t kMost = 1 << 30;
  std::int64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && at == text.data() + text.size() && value >= 1 && value <= kMost
             ? value
             : 0;
}

}  // namespace

std::string SharedPrefix::to_string() const {
  return given() ? fmt::format("{}:{}", length, rows) : "";
}

SharedPrefix parse_prefix(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos)
    if (const SharedPrefix prefix{count(text.substr(0, colon)), count(text.substr(colon + 1))};
        prefix.length > 0 && prefix.rows > 0)
      return prefix;
  throw Error(
      "case_prefix",
      fmt::format("prefix={}: not LENGTH:ROWS, two numbers from 1 to 2^30; legal is such as "
                  "prefix=5:3, 3 rows of 5 tokens",
                  text));
}

void require_prefix(const SharedPrefix& prefix, std::int64_t batch, std::int64_t shortest) {
  if (!prefix.given()) return;
  if (prefix.rows > batch)
    throw Error("case_prefix",
                fmt::format("prefix={}: {} rows of prefixes for batch={}; nearest legal: {}",
                            prefix.to_string(), prefix.rows, batch,
                            SharedPrefix{prefix.length, batch}.to_string()));
  if (prefix.length < shortest) return;
  const std::string nearest =
      shortest > 1 ? SharedPrefix{shortest - 1, prefix.rows}.to_string() : "no prefix";
  throw Error("case_prefix",
              fmt::format("prefix={}: {} tokens of prefix, and a row of {} in all, which needs one "
                          "of its own; nearest legal: {}",
                          prefix.to_string(), prefix.length, shortest, nearest));
}

}  // namespace shardproof
