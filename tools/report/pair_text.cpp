#include "tools/report/pair_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/text/wrapped.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::tools {
namespace {

using dump::Likeness;
using dump::Pair;
using dump::PairRow;
using dump::Row;

std::string line_of(const std::string& text) { return wrapped(text, kWidth, "  ") + "\n"; }

std::string number_or_dash(double v, bool any) { return any ? fmt::format("{:.1e}", v) : "-"; }

bool agrees(const PairRow& row) {
  return row.likeness == Likeness::same || row.likeness == Likeness::rounding;
}

/// Columns: what A and B are from exact for their own operands, how far they are apart.
std::string columns(const PairRow& row, const Pair* pair) {
  const auto found = [&](const std::optional<std::size_t>& at, const dump::JudgedTrace& of) {
    if (!at) return std::string("-");
    const Row& judged = of.verdict.rows[*at];
    if (judged.fit == bounds::Fit::different && !judged.follows) return std::string("wrong");
    return number_or_dash(judged.found(), judged.found() > 0);
  };
  const bool far = row.paired() && row.apart.unequal > 0 && !row.other_tokens;
  const std::string in_a = pair == nullptr ? "" : fmt::format(" {:>8}", found(row.a, pair->a));
  const std::string in_b = pair == nullptr ? "" : fmt::format(" {:>8}", found(row.b, pair->b));
  std::string units = number_or_dash(row.apart.units, far && row.apart.units > 0);
  if (far && row.apart.units > 0 && row.apart.units < 1e4)
    units = fmt::format("{:.1f}", row.apart.units);
  return fmt::format("{}{} {:>7} {:>7}", in_a, in_b, number_or_dash(row.apart.relative(), far),
                     units);
}

std::string table(const std::vector<PairRow>& rows, const Pair* pair, bool quiet) {
  std::size_t widest = 4;
  const std::size_t step = pair == nullptr ? 45 : 27;
  for (const PairRow& row : rows) widest = std::max(widest, row.title.size());
  widest = std::min(widest, step);
  std::string out, said;
  for (const PairRow& row : rows) {
    if (!row.paired() && !is_wrong(row.likeness)) continue;
    if (quiet && agrees(row)) continue;
    if (out.empty())
      out = fmt::format("{:<{}} {:<17}{} {:>7} {:>7}\n", "step", widest, "verdict",
                        pair == nullptr ? "" : "  found A  found B", "apart", "units");
    const bool own = row.title.size() > widest;
    if (own) out += row.title + "\n";
    out += fmt::format("{:<{}} {:<17}{}\n", own ? "" : row.title, widest, to_string(row.likeness),
                       columns(row, pair));
    // What many rows in turn say is said once.
    if (!row.why.empty() && row.why != said) out += wrapped("  " + row.why, kWidth, "    ") + "\n";
    said = row.why;
  }
  return out;
}

std::string only_in(const std::vector<PairRow>& rows) {
  std::vector<std::string> in_a, in_b;
  for (const PairRow& row : rows)
    if (!row.paired()) (row.a ? in_a : in_b).push_back(row.title);
  std::string out;
  const auto add = [&](std::string_view of, const std::vector<std::string>& titles) {
    if (titles.empty()) return;
    const std::size_t named = std::min<std::size_t>(titles.size(), 3);
    out += line_of(fmt::format(
        "only in {}: {}{}", of,
        fmt::join(titles.begin(), titles.begin() + static_cast<std::ptrdiff_t>(named), ", "),
        titles.size() > named ? fmt::format(" and {} more", titles.size() - named) : ""));
  };
  add("A", in_a);
  add("B", in_b);
  return out;
}

std::string counts(const std::vector<PairRow>& rows) {
  std::string text = fmt::format(
      "{} values of both:",
      std::count_if(rows.begin(), rows.end(), [](const PairRow& row) { return row.paired(); }));
  bool any = false;
  for (const Likeness likeness :
       {Likeness::same, Likeness::rounding, Likeness::a_wrong, Likeness::b_wrong,
        Likeness::both_wrong, Likeness::not_the_same, Likeness::operands, Likeness::not_judged}) {
    const auto n = std::count_if(rows.begin(), rows.end(), [&](const PairRow& row) {
      return row.likeness == likeness && row.paired();
    });
    if (n == 0) continue;
    text += fmt::format("{} {} {}", any ? "," : "", n, to_string(likeness));
    any = true;
  }
  return line_of(text);
}

std::string drift_table(const Pair& pair) {
  const std::vector<LayerDrift> layers = layer_drifts(pair);
  if (layers.empty()) return "";
  std::string out = fmt::format("{:<26} {:>8} {:>16} {:>8} {:>16}\n", "drift from exact", "A",
                                "random orders", "B", "random orders");
  const auto runs = [](const dump::Wander::OfLayer* of) {
    return of == nullptr ? std::string("-") : fmt::format("{:.1e}-{:.1e}", of->least, of->most);
  };
  for (const LayerDrift& one : layers) {
    const bool own = one.id.size() > 26;
    if (own) out += one.id + "\n";
    out += fmt::format("{:<26} {:>8} {:>16} {:>8} {:>16}\n", own ? "" : one.id,
                       number_or_dash(one.a, one.a >= 0), runs(one.runs_a),
                       number_or_dash(one.b, one.b >= 0), runs(one.runs_b));
  }
  return out;
}

/// The positions that are furthest apart; all are in the JSON.
std::string logits_text(std::vector<dump::PositionOfLogits> positions) {
  constexpr std::size_t kShown = 4;
  const auto equal = std::erase_if(positions, [](const auto& one) { return one.most == 0; });
  stable_sort(positions, [](const auto& x, const auto& y) { return x.most > y.most; });
  std::string out;
  for (std::size_t i = 0; i < std::min(positions.size(), kShown); ++i)
    out += line_of("logits of " + words_of(positions[i]));
  if (positions.size() > kShown)
    out += line_of(
        fmt::format("logits of {} more positions are less far apart", positions.size() - kShown));
  if (equal > 0) out += line_of(fmt::format("logits of {} positions are the same", equal));
  return out;
}

std::string text_of(const Pair& pair, bool quiet) {
  std::string out;
  for (const dump::Difference& one : pair.differences)
    out += line_of(
        fmt::format("{} differ: {}", one.of == "sampling" ? "samplings" : one.of, one.text));
  out += table(pair.rows, &pair, quiet);
  for (const bool of_b : {false, true})
    for (const dump::Unknown& u : (of_b ? pair.b : pair.a).verdict.unknown)
      out += line_of(fmt::format("unknown in {}: {}: {}", of_b ? "B" : "A", u.name, u.why));
  out += only_in(pair.rows) + counts(pair.rows);
  if (!quiet) out += drift_table(pair);
  if (!quiet) out += logits_text(pair.logits);
  for (const dump::Parting& parting : pair.partings) out += line_of(words_of(parting));
  for (const bool of_b : {false, true})
    for (const std::string& note : (of_b ? pair.b : pair.a).notes)
      out += line_of(fmt::format("note on {}: {}", of_b ? "B" : "A", note));
  if (pair.first)
    out += line_of(fmt::format("first that parts although its operands agree: {}",
                               pair.rows[*pair.first].title));
  return out + wrong_value_text(pair, false) + wrong_value_text(pair, true);
}

std::string text_of(const dump::Plain& plain, bool quiet) {
  std::string out;
  for (const dump::Difference& one : plain.differences)
    out += line_of(fmt::format("{} differ: {}", one.of, one.text));
  out += table(plain.rows, nullptr, quiet) + only_in(plain.rows) + counts(plain.rows);
  for (const std::string& finding : plain.findings) out += line_of("found: " + finding);
  return out;
}

}  // namespace

std::string wrong_value_text(const Pair& pair, bool of_b) {
  const Row* const wrong = pair.wrong(of_b);
  if (wrong == nullptr) return "";
  const Row& judged = *wrong;
  const dump::JudgedTrace& trace = of_b ? pair.b : pair.a;
  std::string out = fmt::format("wrong in {}: {}\n", of_b ? "B" : "A", judged.title);
  out += wrapped(fmt::format("  in the file: {}; {} of {} elements", judged.name,
                             judged.fit == bounds::Fit::unlikely ? judged.outliers : judged.wrong,
                             judged.elements),
                 kWidth, "    ") +
         "\n";
  if (judged.worst)
    out += wrapped(fmt::format("  worst [{}]: {:.9g}, expected {:.9g} to {:.9g}",
                               fmt::join(judged.worst->index, ","), judged.worst->actual,
                               judged.worst->low, judged.worst->high),
                   kWidth, "    ") +
           "\n";
  if (trace.first() != &judged) return out;
  if (trace.diagnosis.empty() || !trace.diagnosis.front().explains)
    return out + "  none of the known faults explains it\n";
  const diagnosis::Hypothesis& cause = trace.diagnosis.front();
  return out +
         wrapped(fmt::format("  explained by {}: {}", cause.fault, cause.detail), kWidth, "    ") +
         "\n";
}

std::string pair_text(const PairComparison& of, bool quiet) {
  std::string out = line_of("A: " + of.request.a.file) + line_of("B: " + of.request.b.file);
  out += of.request.plain ? text_of(of.plain, quiet) : text_of(of.pair, quiet);
  return out + line_of(sentence(of));
}

}  // namespace shardproof::tools
