#include "golden/trace/claim/given_values.h"

#include <fmt/format.h>

#include <cctype>

#include "golden/trace/claim/arithmetic_declaration.h"

namespace shardproof::dump {
namespace {

/// Matches greedily; backtracks to the last star on a mismatch.
bool is_of(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

bool is_of_tail(std::string_view pattern, std::string_view name) {
  if (is_of(pattern, name)) return true;
  const std::size_t dot = name.find('.');
  return dot != name.npos && is_of_tail(pattern, name.substr(dot + 1));
}

/// Rewrites "layer3" as "layers.3".
std::string with_dot(std::string_view name) {
  std::string text(name);
  for (std::size_t at = text.find("layer"); at != text.npos; at = text.find("layer", at + 5))
    if (at + 5 < text.size() && std::isdigit(static_cast<unsigned char>(text[at + 5])) != 0)
      text.insert(at + 5, "s.");
  return text;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  return is_of_tail(pattern, name) || is_of_tail(with_dot(pattern), with_dot(name));
}

GivenValues::GivenValues(const std::vector<std::string>& patterns)
    : patterns_(patterns), met_(patterns.size(), false) {}

bool GivenValues::operator()(const std::string& name, const dump::Attributes& attributes) {
  bool given = false;
  if (const auto said = attributes.find("given"); said != attributes.end()) {
    const std::string& text = said->second;
    given = text == "true" || text == "1";
    if (!given && text != "false" && text != "0")
      reject_attribute("given", text, "legal: true, false");
  }
  for (std::size_t i = 0; i < patterns_.size(); ++i)
    if (matches(patterns_[i], name)) given = met_[i] = true;
  return given;
}

void GivenValues::require_all_met() const {
  for (std::size_t i = 0; i < patterns_.size(); ++i)
    if (!met_[i])
      throw Error("compare_given",
                  fmt::format("given={:?}: no value of the trace has such a name", patterns_[i]));
}

}  // namespace shardproof::dump
