#include "tools/compare_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/runner/json_text.h"
#include "tools/wrapped.h"

namespace shardproof::tools {
namespace {

using candidate::Fit;
using candidate::Row;
using candidate::WrongElement;

constexpr std::size_t kWidth = 80;

std::string chip_name(const candidate::Held& held, int chip) {
  return held.whole ? "" : " on chip " + held.torus.name(chip);
}

std::string number(double v) { return fmt::format("{:.9g}", v); }

std::string element(const candidate::Held& held, const WrongElement& e) {
  std::string actual = number(e.actual), low = number(e.low), high = number(e.high);
  if (actual == low || actual == high) {  // digits of f64
    actual = fmt::format("{:.17g}", e.actual);
    low = fmt::format("{:.17g}", e.low);
    high = fmt::format("{:.17g}", e.high);
  }
  return fmt::format("[{}]{}: {}, expected {}", fmt::join(e.index, ","), chip_name(held, e.chip),
                     actual, e.low == e.high ? low : fmt::format("{} to {}", low, high));
}

std::string table(const Comparison& of, bool quiet) {
  std::string out;
  bool copies_differ = false, incomplete = false;
  std::size_t widest = 4;
  for (const Row& row : of.verdict.rows) widest = std::max(widest, row.title.size());
  widest = std::min<std::size_t>(widest, 40);
  for (const Row& row : of.verdict.rows) {
    const bool right = row.fit == Fit::equal || row.fit == Fit::within;
    const bool input = row.fit == Fit::not_judged && !row.of_run;
    if (quiet && (input || (right && !row.incomplete))) continue;
    if (out.empty())
      out = fmt::format("{:<{}} {:<10} {:>10} {:>8} {:>8}\n", "step", widest, "verdict", "elements",
                        "slack", "drift");
    std::string line =
        fmt::format("{:<{}} {:<10}", row.title, widest, candidate::to_string(row.fit));
    if (row.fit == Fit::not_judged)
      line += " " + row.why;
    else if (row.fit == Fit::different)
      line += fmt::format(" {:>10} {} wrong{}", row.elements, row.wrong,
                          row.follows ? "; follows" : "");
    else
      line += fmt::format(" {:>10} {:>8} {:>8}", row.elements,
                          row.slack > 0 ? fmt::format("{:.1f}", row.slack) : "-",
                          row.drift >= 0 ? fmt::format("{:.1e}", row.drift) : "-");
    if (row.incomplete && row.fit != Fit::not_judged) line += " +", incomplete = true;
    if (row.copies_differ) line += " *", copies_differ = true;
    out += line + "\n";
  }
  if (incomplete) out += "+ not every element is there\n";
  if (copies_differ) out += "* its copies differ from chip to chip\n";
  return out;
}

std::string counts(const Comparison& of) {
  const auto& v = of.verdict;
  std::string text = fmt::format("{} of {} values compared:", v.compared, v.whole);
  bool any = false;
  for (const Fit fit : {Fit::equal, Fit::within, Fit::loose, Fit::different, Fit::not_judged})
    if (const std::int64_t n = v.count(fit); n > 0 || fit == Fit::different) {
      text += fmt::format("{} {} {}", any ? "," : "", n, candidate::to_string(fit));
      any = true;
    }
  if (v.copies > 0) text += fmt::format("; {} the same as another", v.copies);
  if (!v.unknown.empty()) text += fmt::format("; {} unknown names", v.unknown.size());
  if (!v.first && v.exit_code() != 0) text += "; none equal or within: nothing is proved";
  return wrapped(text, kWidth, "  ") + "\n";
}

/// "M 3; H 0 to 3, 8": of the dims of which not all is wrong.
std::string box_text(const candidate::Subject& subject, const Row& row) {
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

std::string divergence(const Comparison& of) {
  const Row& row = of.verdict.rows[*of.verdict.first];
  const candidate::Held& held = of.values.held[row.held];
  std::string out = fmt::format("first divergence: {}\n", row.title);
  if (row.name != row.title)
    out += wrapped(fmt::format("  in the file: {}", row.name), kWidth, "    ") + "\n";
  out += fmt::format("  {}{} of {} elements\n",
                     held.whole ? ""
                                : fmt::format("{}, {} of {} chips, ", held.layout.to_string(),
                                              row.wrong_chips, row.chips),
                     row.wrong, row.elements);
  if (!row.box.empty())
    out += wrapped("  wrong is exactly " + box_text(held.subject, row), kWidth, "    ") + "\n";
  out += wrapped("  first " + element(held, *row.first), kWidth, "    ") + "\n";
  out += wrapped("  worst " + element(held, *row.worst), kWidth, "    ") + "\n";
  if (row.follows) out += "  it follows from the trace's own operands: an earlier value is wrong\n";
  out += "diagnosis:";
  if (of.diagnosis.empty()) return out + " none of the known faults explains it\n";
  out += of.diagnosis.front().explains ? "\n" : " none of the known faults explains it; nearest:\n";
  int rank = 0;
  for (const diagnosis::Hypothesis& h : of.diagnosis)
    out += wrapped(fmt::format("  {}. {}: {} ({}residual {:.2g})", ++rank, h.fault, h.detail,
                               h.explains ? "explains it; " : "", h.residual),
                   kWidth, "     ") +
           "\n";
  return out;
}

nlohmann::json finite(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}

nlohmann::json as_json(const candidate::Held& held, const WrongElement& e) {
  nlohmann::json out{{"index", e.index},
                     {"actual", finite(e.actual)},
                     {"expected", {finite(e.low), finite(e.high)}}};
  if (!held.whole) out["chip"] = held.torus.name(e.chip);
  return out;
}

}  // namespace

std::string text_report(const Comparison& of, bool quiet) {
  std::string out = table(of, quiet);
  for (const candidate::Unknown& u : of.verdict.unknown)
    out += wrapped(fmt::format("unknown: {}: {}", u.name, u.why), kWidth, "  ") + "\n";
  out += counts(of);
  if (of.verdict.first) out += divergence(of);
  return out;
}

std::string json_report(const Comparison& of) {
  const candidate::Verdict& v = of.verdict;
  nlohmann::json out{{"file", of.file},
                     {"case", of.of},
                     {"exact", of.claim.exact},
                     {"compared", v.compared},
                     {"of", v.whole},
                     {"values", nlohmann::json::array()},
                     {"unknown", nlohmann::json::array()},
                     {"verdict", v.exit_code() == 0 ? "right"
                                 : v.first          ? "different"
                                                    : "not judged"}};
  if (!of.golden.empty()) out["golden"] = of.golden;
  for (const Row& row : v.rows) {
    nlohmann::json value{
        {"id", row.title},           {"name", row.name},   {"fit", candidate::to_string(row.fit)},
        {"elements", row.elements},  {"wrong", row.wrong}, {"slack", finite(row.slack)},
        {"reach", finite(row.reach)}};
    if (row.drift >= 0) value["drift"] = finite(row.drift);
    if (!row.why.empty()) value["why"] = row.why;
    if (row.copies_differ) value["copies_differ"] = true;
    if (row.incomplete) value["incomplete"] = true;
    if (row.follows) value["follows"] = true;
    out["values"].push_back(value);
  }
  for (const candidate::Unknown& u : v.unknown)
    out["unknown"].push_back({{"name", u.name}, {"why", u.why}});
  if (v.first) {
    const Row& row = v.rows[*v.first];
    const candidate::Held& held = of.values.held[row.held];
    out["first"] = {{"step", row.title},
                    {"name", row.name},
                    {"chips", row.chips},
                    {"wrong_chips", row.wrong_chips},
                    {"elements", row.elements},
                    {"wrong", row.wrong},
                    {"first", as_json(held, *row.first)},
                    {"worst", as_json(held, *row.worst)}};
    for (std::size_t d = 0; d < row.box.size(); ++d)
      if (std::ssize(row.box[d]) != held.subject.shape[d])
        out["first"]["exactly"][std::string(1, held.subject.dims[d])] = row.box[d];
    if (!held.whole) out["first"]["layout"] = held.layout.to_string();
  }
  out["diagnosis"] = nlohmann::json::array();
  for (const diagnosis::Hypothesis& h : of.diagnosis)
    out["diagnosis"].push_back({{"fault", h.fault},
                                {"detail", h.detail},
                                {"axes", h.axes},
                                {"explains", h.explains},
                                {"residual", finite(h.residual)}});
  return json_text(out) + "\n";
}

}  // namespace shardproof::tools
