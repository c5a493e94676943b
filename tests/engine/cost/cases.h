#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <istream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/weights/expect_error.h"
#include "weights/base/detail/words.h"

namespace shardproof::cost {

/// One line of a text of cases, `KIND | FIELD | ...`.
struct CaseLine {
  std::vector<std::string> fields;  ///< without the kind; \n stands for the end of a line

  const std::string& text(std::size_t at) const { return fields.at(at); }
  double number(std::size_t at) const {
    std::size_t end = 0;
    const double value = std::stod(fields.at(at), &end);
    require_end(at, end);
    return value;
  }
  std::int64_t whole(std::size_t at) const {
    std::size_t end = 0;
    const std::int64_t value = std::stoll(fields.at(at), &end);
    require_end(at, end);
    return value;
  }
  /// Throws std::invalid_argument unless a field ends there.
  void require_end(std::size_t at, std::size_t end) const {
    if (end != fields.at(at).size()) throw std::invalid_argument(fields.at(at));
  }
};

/// The kinds of each text, of which a test reads each.
inline const std::map<std::string, std::vector<std::string_view>> kKindsOfLines{
    {"analysis/intensities.txt", {"published"}},
    {"analysis/refused.txt", {"experts", "intensity", "offload", "pipeline", "speculation"}},
    {"chip/quantities.txt", {"nearest", "print", "read", "refuse", "round"}},
    {"chip/refused.txt", {"mine", "text"}},
    {"graph/parameters.txt", {"matrices", "total"}},
    {"paper/sections.txt", {"rows", "shown", "unexplained"}},
    {"plan/goals.txt", {"infeasible", "number"}},
    {"work/constants.txt", {"text"}}};

/// Returns the lines of a kind of a text, which has no others than `kinds`: else throws
/// std::invalid_argument. A line that begins with blanks continues the one before; # begins a
/// comment.
inline std::vector<CaseLine> case_lines(std::istream& text, std::string_view kind,
                                        const std::vector<std::string_view>& kinds) {
  std::vector<std::string> whole;
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("  "))
      whole.back() += fmt::format(" {}", trim(line));
    else if (!line.empty() && !line.starts_with('#'))
      whole.push_back(line);
  std::vector<CaseLine> lines;
  for (const std::string& line : whole) {
    const std::vector<std::string_view> parts = split(line, "|");
    if (std::find(kinds.begin(), kinds.end(), parts[0]) == kinds.end())
      throw std::invalid_argument(line);
    if (parts[0] != kind) continue;
    CaseLine& one = lines.emplace_back();
    for (std::size_t i = 1; i < parts.size(); ++i) {
      std::string& field = one.fields.emplace_back(parts[i]);
      for (std::size_t at; (at = field.find("\\n")) != std::string::npos;)
        field.replace(at, 2, "\n");
    }
  }
  return lines;
}

/// Returns the lines of a kind of the text tests/engine/cost/NAME.
inline std::vector<CaseLine> case_lines(const std::string& name, std::string_view kind) {
  std::ifstream file(std::string(SHARDPROOF_SOURCE "/tests/engine/cost/") + name);
  std::vector<CaseLine> lines = case_lines(file, kind, kKindsOfLines.at(name));
  EXPECT_FALSE(lines.empty()) << name << " has no " << kind;
  return lines;
}

/// Calls each case of a kind. The last field is the message that it must throw; its label, if it is
/// one word; or "legal".
template <class Call>
void expect_refusals(const std::string& name, std::string_view kind, const Call& call) {
  for (CaseLine line : case_lines(name, kind)) {
    const std::string expected = line.fields.back();
    line.fields.pop_back();
    const std::string said = message_of([&] { call(line); });
    const bool label = expected.find(' ') == std::string::npos;
    EXPECT_EQ(said.empty() ? "legal"
              : label      ? said.substr(0, said.find(':'))
                           : said,
              expected)
        << fmt::format("{}", fmt::join(line.fields, " | "));
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

}  // namespace shardproof::cost
