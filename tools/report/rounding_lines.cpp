#include "tools/report/rounding_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace shardproof::tools {
namespace {

/// Values of one kind with the same finding.
struct Group {
  std::int64_t values = 0, elements = 0, misses = 0, others = 0;
};

/// Returns the finding for a value: the way of rounding without misses, if it is the only one.
std::string said_of(const dump::RoundingReport& report) {
  if (report.misses > 0) return "no one way of rounding explains all";
  return report.others == 0 ? "more than one way of rounding explains all" : report.best;
}

std::string text_of(const std::string& said, const Group& group) {
  if (group.misses > 0)
    return fmt::format("{}: the best misses {} of {}", said, group.misses, group.elements);
  if (group.others == 0) return said;
  return fmt::format("{}; every other way misses at least {} of {}", said, group.others,
                     group.elements);
}

}  // namespace

std::vector<std::string> rounding_lines(const dump::Verdict& verdict) {
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const dump::Row& row : verdict.rows) {
    if (!row.rounding) continue;
    const std::string kind = row.title.substr(row.title.rfind('.') + 1);
    Group& group = groups[{kind, said_of(*row.rounding)}];
    ++group.values;
    group.elements += row.rounding->elements;
    group.misses += row.rounding->misses;
    group.others += row.rounding->others;
  }
  std::vector<std::string> lines;
  for (const auto& [key, group] : groups)
    lines.push_back(fmt::format("{} ({} {}): {}", key.first, group.values,
                                group.values == 1 ? "value" : "values",
                                text_of(key.second, group)));
  return lines;
}

}  // namespace shardproof::tools
