#include "tools/report/comparison_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tools/report/rounding_lines.h"
#include "tools/report/sentence.h"
#include "tools/text/wrapped.h"

namespace shardproof::tools {
namespace {

using dump::Fit;
using dump::Row;
using dump::WrongElement;

/// Names the chip of a wrong element, with its rank in launcher order.
std::string chip_name(const Comparison& of, const dump::DumpedValue& dumped, int chip) {
  if (dumped.whole) return "";
  return fmt::format(" on chip {}, rank {}", dumped.torus.name(chip),
                     of.claim.mesh.rank(dumped.torus, chip));
}

std::string number(double v) { return fmt::format("{:.9g}", v); }

std::string element(const Comparison& of, const dump::DumpedValue& dumped, const WrongElement& e) {
  std::string actual = number(e.actual), low = number(e.low), high = number(e.high);
  if (actual == low || actual == high) {  // f32 digits do not distinguish them
    actual = fmt::format("{:.17g}", e.actual);
    low = fmt::format("{:.17g}", e.low);
    high = fmt::format("{:.17g}", e.high);
  }
  return fmt::format("[{}]{}: {}, expected {}", fmt::join(e.index, ","),
                     chip_name(of, dumped, e.chip), actual,
                     e.low == e.high ? low : fmt::format("{} to {}", low, high));
}

/// Columns of numbers: the distance from exact, its bound, and the drift over all steps so far.
std::string numbers(const Row& row) {
  const auto text = [](double v, bool any) { return any ? fmt::format("{:.1e}", v) : "-"; };
  return fmt::format(" {:>7} {:>7} {:>7}", text(row.found(), row.found() > 0),
                     text(row.allowed(), row.allowed() > 0), text(row.drift, row.drift >= 0));
}

/// Returns the last parts of ids, without repetition.
std::vector<std::string> names_of(const std::vector<std::string>& ids) {
  std::vector<std::string> names;
  for (const std::string& id : ids) {
    std::string name = id.substr(id.rfind('.') + 1);
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

/// Returns the text that follows the verdict of a row.
std::string rest_of(const Row& row) {
  if (row.fit == Fit::not_judged) {
    if (row.needs.empty()) return " " + row.why;
    return fmt::format(" {}: {}", row.why, fmt::join(names_of(row.needs), ", "));
  }
  if (row.not_finite > 0)
    return fmt::format(" {:>9} {} NaN or infinite", row.elements, row.not_finite);
  if (row.fit == Fit::unlikely && row.outliers > 0)
    return fmt::format(" {:>9} {} outside 2^-41", row.elements, row.outliers);
  if (row.fit == Fit::different)
    return fmt::format(" {:>9} {} wrong{}", row.elements, row.wrong,
                       row.follows ? "; follows" : "");
  return fmt::format(" {:>9}{}", row.elements, numbers(row));
}

bool is_right(const Row& row) { return row.fit <= Fit::near; }

std::string table(const Comparison& of, bool quiet) {
  constexpr std::size_t kStep = 31;  // wider titles get a separate line
  std::string out;
  bool copies_differ = false, incomplete = false;
  std::string unknown;
  std::size_t widest = 4;
  for (const Row& row : of.verdict.rows) widest = std::max(widest, row.title.size());
  widest = std::min(widest, kStep);
  for (const Row& row : of.verdict.rows) {
    const bool input = row.fit == Fit::not_judged && !row.of_run;
    if (quiet && (input || (is_right(row) && !row.incomplete))) continue;
    if (out.empty())
      out = fmt::format("{:<{}} {:<14} {:>9} {:>7} {:>7} {:>7}\n", "step", widest, "verdict",
                        "elements", "found", "allowed", "drift");
    const std::string own = row.title.size() > widest ? row.title + "\n" : "";
    std::string line = fmt::format("{:<{}} {:<14}{}", own.empty() ? row.title : "", widest,
                                   bounds::to_string(row.fit), rest_of(row));
    if (row.incomplete && row.fit != Fit::not_judged) line += " +", incomplete = true;
    if (row.copies_differ) line += " *", copies_differ = true;
    if (row.unknown > 0 && row.fit != Fit::not_judged) line += " -", unknown = row.why;
    out += own + wrapped(line, kWidth, "  ") + "\n";
    if (row.fit != Fit::not_judged && row.unknown == 0 && !row.why.empty())
      out += wrapped("  " + row.why, kWidth, "    ") + "\n";
    if (row.evidence) out += wrapped("  " + row.evidence->text(), kWidth, "    ") + "\n";
    for (const std::string& text : row.signs) out += wrapped("  " + text, kWidth, "    ") + "\n";
  }
  if (incomplete) out += "+ not every element is there\n";
  if (!unknown.empty())
    out +=
        wrapped(fmt::format("- of elements that are not judged: {}", unknown), kWidth, "  ") + "\n";
  if (copies_differ) out += "* its replicas differ\n";
  return out;
}

/// Counts the rows of each verdict; the counts sum to all rows.
std::string counts(const Comparison& of) {
  const auto& v = of.verdict;
  std::string text =
      fmt::format("{} of {} values compared; {} rows:", v.compared, v.whole, v.rows.size());
  bool any = false;
  for (const Fit fit : {Fit::equal, Fit::within, Fit::likely_within, Fit::near, Fit::loose,
                        Fit::unlikely, Fit::different, Fit::not_judged})
    if (const std::int64_t n = v.count(fit); n > 0 || fit == Fit::different) {
      text += fmt::format("{} {} {}", any ? "," : "", n, bounds::to_string(fit));
      any = true;
    }
  if (const std::int64_t given = count_given(of); given > 0)
    text += fmt::format(", of which {} given", given);
  if (v.misfits > 0) text += fmt::format("; {} not fitting the model", v.misfits);
  if (v.copies > 0) text += fmt::format("; {} the same as another", v.copies);
  if (!v.unknown.empty()) text += fmt::format("; {} unknown names", v.unknown.size());
  if (!v.proves() && v.count(Fit::different) == 0)
    text += "; none equal, within or near: nothing is proved";
  return wrapped(text, kWidth, "  ") + "\n";
}

/// Lists the wrong indices of each dim that is not entirely wrong: "M 3; H 0 to 3, 8".
std::string box_text(const dump::Subject& subject, const Row& row) {
  std::string out;
  for (std::size_t d = 0; d < row.box.size(); ++d) {
    const std::vector<std::int64_t>& indices = row.box[d];
    if (std::ssize(indices) == subject.shape[d]) continue;
    std::string list;
    for (std::size_t i = 0; i < indices.size();) {
      std::size_t end = i + 1;
      while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
      list += list.empty() ? " " : ", ";
      list += end - i > 1 ? fmt::format("{} to {}", indices[i], indices[end - 1])
                          : fmt::format("{}", indices[i]);
      i = end;
    }
    out += fmt::format("{}{}{}", out.empty() ? "" : "; ", subject.dims[d], list);
  }
  return out;
}

/// Says the layout, and how many chips have wrong numbers.
std::string where_text(const dump::DumpedValue& dumped, const Row& row) {
  if (dumped.whole) return "";
  const std::string layout = dumped.layout.to_string() + ", ";
  if (row.wrong_parts.empty()) return layout;
  return layout + fmt::format("{} of {} chips, ", row.wrong_parts.size(), row.chips);
}

std::string how_many(const Row& row) {
  if (row.fit == Fit::unlikely && row.evidence) return weighed(row);
  return fmt::format("{} of {} elements", row.fit == Fit::unlikely ? row.outliers : row.wrong,
                     row.elements);
}

}  // namespace

std::string divergence_text(const Comparison& of) {
  const Row& row = *of.first();
  const dump::DumpedValue& dumped = of.dumped(row);
  std::string out = fmt::format("first divergence: {}\n", row.title);
  if (row.name != row.title)
    out += wrapped(fmt::format("  in the file: {}", row.name), kWidth, "    ") + "\n";
  out += "  " + where_text(dumped, row) + how_many(row) + "\n";
  if (!row.box.empty())
    out += wrapped("  wrong is exactly " + box_text(dumped.subject, row), kWidth, "    ") + "\n";
  out += wrapped("  first " + element(of, dumped, *row.first), kWidth, "    ") + "\n";
  out += wrapped("  worst " + element(of, dumped, *row.worst), kWidth, "    ") + "\n";
  if (row.follows) out += "  it follows from the trace's own operands: an earlier value is wrong\n";
  out += "diagnosis:";
  if (of.diagnosis.empty()) return out + " none of the known faults explains it\n";
  out += of.diagnosis.front().explains ? "\n" : " none of the known faults explains it; nearest:\n";
  int rank = 0;
  for (const diagnosis::Hypothesis& h : of.diagnosis)
    out +=
        wrapped(fmt::format("  {}. {}: {} ({}residual {:.2g})", ++rank, h.fault, h.detail,
                            h.explains ? "explains it; "
                                       : fmt::format("leaves {:.2g} of the difference; ", h.left),
                            h.residual),
                kWidth, "     ") +
        "\n";
  return out;
}

std::string comparison_text(const Comparison& of, bool quiet) {
  std::string out = table(of, quiet);
  for (const dump::Unknown& u : of.verdict.unknown)
    out += wrapped(fmt::format("unknown: {}: {}", u.name, u.why), kWidth, "  ") + "\n";
  out += counts(of);
  for (const std::string& note : of.notes) out += wrapped("note: " + note, kWidth, "  ") + "\n";
  for (const std::string& line : quiet ? std::vector<std::string>() : rounding_lines(of.verdict))
    out += wrapped("rounding: " + line, kWidth, "  ") + "\n";
  if (of.first() != nullptr) out += divergence_text(of);
  for (const std::string& lack : quiet ? std::vector<std::string>() : of.verdict.not_shown)
    out += wrapped("not shown by this run: " + lack, kWidth, "  ") + "\n";
  return out;
}

}  // namespace shardproof::tools
