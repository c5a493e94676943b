#include "tools/report/sentence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/runner/case_source.h"

namespace shardproof::tools {
namespace {

using bounds::Fit;

/// Counts of the verdict for a dump without a divergence.
std::string shown(const dump::Verdict& v) {
  const std::int64_t right =
      v.count(Fit::equal) + v.count(Fit::within) + v.count(Fit::likely_within) + v.count(Fit::near);
  return fmt::format("{} of {} values of the model are compared, {} rows are right", v.compared,
                     v.whole, right);
}

/// Why a dump without a divergence fails.
std::string shortcoming(const Comparison& of) {
  const dump::Verdict& v = of.verdict;
  if (!v.proves()) return "nothing is proved: no value is equal, within or near";
  if (v.misfits > 0)
    return fmt::format("{} arrays do not fit the model and are not judged; {}", v.misfits,
                       shown(v));
  if (v.lacks_operands()) return "operands are missing, so that values are not judged; " + shown(v);
  if (const auto bad = v.first_from(of.request.fail_on))
    return fmt::format("{} is {}; {}", v.rows[*bad].title, bounds::to_string(v.rows[*bad].fit),
                       shown(v));
  return shown(v);
}

}  // namespace

std::vector<int> wrong_ranks(const Comparison& of) {
  std::vector<int> ranks;
  const dump::Row* const row = of.first();
  if (row == nullptr || of.dumped(*row).whole) return ranks;
  for (const auto& [chip, part] : row->wrong_parts)
    ranks.push_back(of.claim.mesh.rank(of.dumped(*row).torus, chip));
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    parts.push_back(end - i > 1 ? fmt::format("{}-{}", ranks[i], ranks[end - 1])
                                : fmt::format("{}", ranks[i]));
    i = end;
  }
  if (parts.empty()) return "";
  return fmt::format("rank{} {}", ranks.size() > 1 ? "s" : "", fmt::join(parts, ", "));
}

std::string sentence(const Comparison& of) {
  const dump::Row* const row = of.first();
  if (row == nullptr)
    return (of.exit_code() == 0 ? "No value is wrong: " : "Not shown to be right: ") +
           (of.exit_code() == 0 ? shown(of.verdict) : shortcoming(of)) + ".";
  std::string out = ranks_text(wrong_ranks(of));
  if (!out.empty()) out += ", ";
  out += row->name + ": ";
  if (!of.diagnosis.empty() && of.diagnosis.front().explains) {
    const diagnosis::Hypothesis& cause = of.diagnosis.front();
    return out + cause.fault + (cause.detail.empty() ? "" : ": " + cause.detail);
  }
  if (row->fit == Fit::different)
    return out + fmt::format("{} of {} elements are wrong; no known fault explains them",
                             row->wrong, row->elements);
  // A value that is weighed by its drift has no elements outside of a bound.
  if (row->evidence) return out + weighed(*row);
  return out + fmt::format("{} of {} elements differ by more than rounding is likely to",
                           row->outliers, row->elements);
}

std::string weighed(const dump::Row& row) {
  return row.not_finite > 0
             ? fmt::format("{} of {} elements are NaN or infinite", row.not_finite, row.elements)
             : row.why;
}

std::string remedy(const Comparison& of) {
  const dump::Row* const row = of.first();
  if (row == nullptr) return "";
  if (!of.diagnosis.empty() && of.diagnosis.front().explains)
    return std::string(diagnosis::remedy(of.diagnosis.front().fault));
  std::vector<std::string> missing;
  for (const Operand& operand : of.operands)
    if (!operand.fit) missing.push_back(operand.id);
  if (!missing.empty())
    return fmt::format("dump its operands, too, so that the cause can be found: {}",
                       fmt::join(missing, ", "));
  return "look at the wrong elements; where the program does something on purpose that the model "
         "does not, declare it (docs/compare.md), or give the value as an operand: --given";
}

std::string command(const Comparison& of) {
  std::string out = "shardproof compare " + shell_word(of.request.file);
  if (of.request.line) out += " --case " + shell_word(*of.request.line);
  if (!of.request.weights_file.empty()) out += " --weights " + shell_word(of.request.weights_file);
  if (!of.request.golden.empty()) out += " --golden " + shell_word(of.request.golden);
  for (const std::string& pattern : of.request.given) out += " --given " + shell_word(pattern);
  if (of.request.fail_on != Fit::unlikely)
    out += " --fail-on " + shell_word(std::string(bounds::to_string(of.request.fail_on)));
  return out;
}

}  // namespace shardproof::tools
