#include "tools/faults/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "golden/faults/equivalence.h"
#include "tools/text/html.h"
#include "tools/text/wrapped.h"

namespace shardproof::tools {
namespace {

using faults::Count;
using faults::Matrix;

/// The characters of a line of a document.
constexpr std::size_t kPageWidth = 100;
/// The head of a column of sentences.
constexpr std::string_view kWords = "what is wrong";

/// A share in percent, rounded down, so that 100 means all.
std::string percent(std::int64_t seen, std::int64_t of) {
  return of == 0 ? "." : fmt::format("{}", 100 * seen / of);
}
std::string number(std::int64_t n) { return fmt::format("{}", n); }

void add_detectors(const Count& count, std::vector<std::string>& row) {
  row.push_back(number(count.mutants));
  for (std::size_t i = 0; i < faults::kDetectors; ++i)
    row.push_back(percent(count.own[i], count.run[i]));
  row.push_back(percent(count.killed, count.mutants - count.equivalent));
  row.push_back(number(count.equivalent));
  row.push_back(number(count.survivors));
}

std::vector<std::string> detector_head(const std::string& first) {
  std::vector<std::string> head{first, "mutants"};
  for (const std::string_view name : faults::detector_names()) head.emplace_back(name);
  head.insert(head.end(), {"any", "equal", "left"});
  return head;
}

Count count_of(const std::map<std::string, Count>& all, std::string_view name) {
  const auto at = all.find(std::string(name));
  return at == all.end() ? Count{} : at->second;
}

FaultTable by_class(const Matrix& matrix) {
  FaultTable table{"Seen by each detector, in percent, by class", detector_head("class"), {}};
  for (const faults::FaultClass& one : faults::all_classes()) {
    const Count count = count_of(matrix.by_class, one.name);
    if (count.mutants == 0) continue;
    table.rows.push_back({std::string(one.name)});
    add_detectors(count, table.rows.back());
  }
  table.rows.push_back({"all"});
  add_detectors(matrix.all, table.rows.back());
  return table;
}

FaultTable by_strategy(const Matrix& matrix) {
  FaultTable table{"By strategy", detector_head("strategy"), {}};
  for (const Strategy& strategy : all_strategies()) {
    const Count count = count_of(matrix.by_strategy, strategy.to_string());
    if (count.mutants == 0) continue;
    table.rows.push_back({strategy.to_string()});
    add_detectors(count, table.rows.back());
  }
  return table;
}

FaultTable others(const Matrix& matrix, const std::string& title, bool per_value) {
  FaultTable table{title, {"class"}, {}};
  for (const std::string_view name : faults::other_check_names()) table.head.emplace_back(name);
  const auto add = [&](const std::string& name, const auto& seen, std::int64_t of) {
    std::vector<std::string> row{name};
    for (std::size_t i = 0; i < faults::kOtherChecks; ++i) row.push_back(percent(seen[i], of));
    table.rows.push_back(std::move(row));
  };
  const auto of = [&](const Count& count) {
    return per_value ? count.per_value : count.end_to_end;
  };
  for (const faults::FaultClass& one : faults::all_classes())
    if (const Count count = count_of(matrix.by_class, one.name); count.mutants > 0)
      add(std::string(one.name), of(count), count.mutants);
  add("all", of(matrix.all), matrix.all.mutants);
  if (matrix.right_runs > 0)
    add("false alarms", per_value ? matrix.per_value_alarms : matrix.end_to_end_alarms,
        matrix.right_runs);
  return table;
}

FaultTable reasons(const Matrix& matrix) {
  FaultTable table{"Equivalent mutants, by reason", {"reason", "mutants"}, {}};
  for (const faults::Reason& reason : faults::all_reasons()) {
    const auto at = matrix.by_reason.find(std::string(reason.name));
    table.rows.push_back(
        {std::string(reason.name), number(at == matrix.by_reason.end() ? 0 : at->second)});
  }
  return table;
}

FaultTable cube(const Matrix& matrix, std::size_t detector) {
  FaultTable table{
      fmt::format("Seen by {}, in percent", faults::detector_names()[detector]), {"strategy"}, {}};
  for (const faults::FaultClass& one : faults::all_classes()) table.head.emplace_back(one.name);
  for (const Strategy& strategy : all_strategies()) {
    if (!matrix.by_strategy.contains(strategy.to_string())) continue;
    std::vector<std::string> row{strategy.to_string()};
    for (const faults::FaultClass& one : faults::all_classes()) {
      const auto at = matrix.by_both.find({std::string(one.name), strategy.to_string()});
      row.push_back(at == matrix.by_both.end()
                        ? "."
                        : percent(at->second.own[detector], at->second.run[detector]));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<std::size_t> widths_of(const FaultTable& table) {
  std::vector<std::size_t> widths;
  for (const std::string& one : table.head) widths.push_back(one.size());
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  return widths;
}

}  // namespace

std::vector<FaultTable> tables_of(const Matrix& matrix) {
  std::vector<FaultTable> all{
      by_class(matrix), by_strategy(matrix),
      others(matrix, "What others would have said of logits and tokens, in percent", false),
      others(matrix, "What others would have said of any named value, in percent", true),
      reasons(matrix)};
  for (std::size_t i = 0; i < faults::kDetectors; ++i) all.push_back(cube(matrix, i));
  return all;
}

FaultTable operator_table(const Matrix& matrix) {
  FaultTable table{"Operators", {"class", "operator", std::string(kWords)}, {}};
  for (const std::string& one : detector_head("")) {
    if (!one.empty()) table.head.push_back(one);
  }
  for (const faults::Operator& how : faults::all_operators()) {
    const Count count = count_of(matrix.by_operator, how.name);
    std::vector<std::string> row{std::string(how.fault_class), std::string(how.name),
                                 std::string(how.what)};
    add_detectors(count, row);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string sentence_of(const Matrix& matrix) {
  const Count& all = matrix.all;
  return fmt::format("{} mutants: {} killed, {} equivalent for a reason, {} left", all.mutants,
                     all.killed, all.equivalent, all.survivors);
}

std::string as_text(const FaultTable& table) {
  const std::vector<std::size_t> widths = widths_of(table);
  std::string text = table.title + "\n";
  const auto add = [&](const std::vector<std::string>& row) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i)
      line += table.head[i] == kWords ? "  " + row[i] : fmt::format(" {:>{}}", row[i], widths[i]);
    text += line + "\n";
  };
  add(table.head);
  for (const auto& row : table.rows) add(row);
  return text;
}

std::string as_markdown(const FaultTable& table) {
  std::string text = fmt::format("**{}**\n\n", table.title);
  const auto add = [&](const std::vector<std::string>& row) {
    text += "|";
    for (const std::string& cell : row) text += fmt::format(" {} |", cell);
    text += "\n";
  };
  add(table.head);
  text += "|---|";
  for (std::size_t i = 1; i < table.head.size(); ++i)
    text += table.head[i] == "operator" || table.head[i] == kWords ? "---|" : "--:|";
  text += "\n";
  for (const auto& row : table.rows) add(row);
  return text;
}

std::string as_html(const FaultTable& table) {
  std::string text = fmt::format("<h2>{}</h2>\n<div class=\"wide\"><table class=\"list\">\n<tr>",
                                 escaped(table.title));
  for (const std::string& one : table.head) text += fmt::format("<th>{}</th>", escaped(one));
  text += "</tr>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (const std::string& cell : row) {
      const bool digits = cell.find_first_not_of("0123456789.") == std::string::npos;
      text += fmt::format("<td{}>{}</td>", digits ? " class=\"n\"" : "", escaped(cell));
    }
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

std::string faults_page(const Matrix& matrix, const std::vector<std::string>& survivors) {
  const bool held = matrix.all.survivors == 0;
  std::string body =
      fmt::format("<h1>shardproof faults</h1>\n<p class=\"sentence {}\" id=\"sentence\">{}</p>\n",
                  held ? "right" : "wrong", escaped((held ? "✓ " : "✗ ") + sentence_of(matrix)));
  for (const std::string& line : survivors) body += fmt::format("<pre>{}</pre>\n", escaped(line));
  for (const FaultTable& table : tables_of(matrix)) body += as_html(table);
  body += as_html(operator_table(matrix));
  return html_page("shardproof faults", body);
}

FaultTable classes_table() {
  FaultTable table{"The classes", {"class", std::string(kWords)}, {}};
  for (const faults::FaultClass& one : faults::all_classes())
    table.rows.push_back({std::string(one.name), std::string(one.what)});
  return table;
}

FaultTable size_table(const faults::SizeCurve& curve) {
  FaultTable table{fmt::format("{}, {}: seen, in percent of these steps", curve.what, curve.format),
                   {"size", "exact", "bounds", "tokens", "top-5", "KL"},
                   {}};
  // Of logits and tokens, then of any named value.
  const std::vector<std::size_t> of_logits{0, 1, 6}, of_values{2, 3, 4, 5};
  for (const std::size_t i : of_values) table.head.emplace_back(faults::other_check_names()[i]);
  for (const faults::SizeSeen& one : curve.sizes) {
    std::vector<std::string> row{one.size, percent(one.exact, one.sites),
                                 percent(one.bounds, one.sites)};
    for (const std::size_t i : of_logits) row.push_back(percent(one.end_to_end[i], one.sites));
    for (const std::size_t i : of_values) row.push_back(percent(one.per_value[i], one.sites));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string matrix_markdown(const Matrix& matrix) {
  std::string text = sentence_of(matrix) + ".\n\n";
  for (const FaultTable& table : tables_of(matrix)) text += as_markdown(table) + "\n";
  return text + as_markdown(operator_table(matrix));
}

std::string sites_sentence(const std::vector<faults::FaultCase>& cases,
                           const std::vector<faults::SizeCurve>& curves) {
  std::set<std::string> sites;
  for (const faults::SizeCurve& curve : curves)
    sites.insert(fmt::format("{} in {}", curve.sizes.at(0).sites, curve.format));
  std::vector<std::string> strategies;
  for (const faults::FaultCase& one : cases) strategies.push_back(one.strategy);
  return fmt::format("Steps of the prefill's layers, {}, of: {}", fmt::join(sites, " and "),
                     fmt::join(strategies, ", "));
}

std::string sizes_markdown(const std::string& where, const std::vector<faults::SizeCurve>& curves) {
  std::string text = wrapped(where + ".", kPageWidth, "") + "\n";
  for (const faults::SizeCurve& curve : curves) text += "\n" + as_markdown(size_table(curve));
  return text;
}

std::string with_part(const std::string& document, const std::string& name,
                      const std::string& text) {
  const std::string begins = fmt::format("<!-- {} -->\n", name);
  const std::string ends = fmt::format("<!-- end of {} -->\n", name);
  const auto begin = document.find(begins);
  const auto end = document.find(ends);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    throw Error("faults_docs", fmt::format("the document lacks the lines <!-- {0} --> and <!-- end "
                                           "of {0} -->, between which tables are written",
                                           name));
  return document.substr(0, begin + begins.size()) + "\n" + text + "\n" + document.substr(end);
}

}  // namespace shardproof::tools
