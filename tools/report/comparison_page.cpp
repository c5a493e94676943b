#include "tools/report/comparison_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/report/chip_grid.h"
#include "tools/report/comparison_text.h"
#include "tools/report/drift_plot.h"
#include "tools/report/marks.h"
#include "tools/report/sentence.h"
#include "tools/report/value_grid.h"
#include "tools/text/html.h"

namespace shardproof::tools {
namespace {

using bounds::Fit;
using dump::Row;

std::string section(std::string_view title, const std::string& body) {
  return body.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", title, body);
}

std::string list(const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string out = "<ul>\n";
  for (const std::string& item : items) out += "<li>" + escaped(item) + "</li>\n";
  return out + "</ul>\n";
}

std::string operands_table(const Comparison& of) {
  if (of.operands.empty()) return "";
  std::string out = "<table class=\"list\" id=\"operands\">\n";
  for (const Operand& operand : of.operands)
    out += fmt::format(
        "<tr><td>{}</td><td>{}</td></tr>\n", escaped(operand.id),
        operand.fit ? fmt::format("{} {}", mark_html(*operand.fit), bounds::to_string(*operand.fit))
                    : "not in the dump");
  return out + "</table>\n";
}

std::string causes_table(const Comparison& of) {
  if (of.diagnosis.empty()) return "<p>None of the known faults explains it.</p>\n";
  std::string out =
      "<table class=\"list\" id=\"causes\">\n<tr><th></th><th>fault</th><th></th>"
      "<th>explains it</th><th>residual</th></tr>\n";
  int rank = 0;
  for (const diagnosis::Hypothesis& h : of.diagnosis)
    out += fmt::format(
        "<tr><td class=\"n\">{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{:.2g}</td>"
        "</tr>\n",
        ++rank, escaped(h.fault), escaped(h.detail),
        h.explains ? "yes" : fmt::format("no, leaves {:.2g}", h.left), h.residual);
  return out + "</table>\n";
}

std::string declarations_table(const Comparison& of) {
  std::string out = "<table class=\"list\" id=\"declared\">\n";
  for (const auto& [name, text] : of.declarations)
    out += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escaped(name), escaped(text));
  for (const std::string& pattern : of.request.given)
    out += fmt::format("<tr><td>--given</td><td>{}</td></tr>\n", escaped(pattern));
  return out + "</table>\n";
}

std::vector<std::string> not_seen(const Comparison& of) {
  std::vector<std::string> out;
  const dump::Verdict& v = of.verdict;
  if (v.compared < v.whole)
    out.push_back(
        fmt::format("{} of {} values of the model have no verdict", v.whole - v.compared, v.whole));
  for (const dump::Unknown& unknown : v.unknown) out.push_back(unknown.name + ": " + unknown.why);
  out.insert(out.end(), v.not_shown.begin(), v.not_shown.end());
  return out;
}

std::string first_section(const Comparison& of) {
  const Row* const row = of.first();
  if (row == nullptr) return "";
  return section("First divergence: " + escaped(row->title),
                 "<pre id=\"first\">" + escaped(divergence_text(of)) + "</pre>\n") +
         section("Its chips", mesh_grid(of, *row)) +
         section("Its blocks, with the largest error of each over the root mean square",
                 block_grid(of, *row)) +
         section("Its operands", operands_table(of)) + section("Causes", causes_table(of));
}

std::string_view style_of(const Comparison& of) {
  if (of.exit_code() == 0) return "right";
  return of.first() != nullptr ? "wrong" : "weak";
}

std::string_view sign_of(const Comparison& of) {
  if (of.exit_code() == 0) return "✓ ";
  return of.first() != nullptr ? "✗ " : "? ";
}

}  // namespace

std::string comparison_page(const Comparison& of) {
  const std::string fix = remedy(of);
  std::string body = fmt::format(
      "<h1>shardproof compare {}</h1>\n<p class=\"sentence {}\" "
      "id=\"sentence\">{}{}</p>\n",
      escaped(of.request.file), style_of(of), sign_of(of), escaped(sentence(of)));
  if (!fix.empty()) body += fmt::format("<p id=\"remedy\">What to do: {}.</p>\n", escaped(fix));
  body += section("Values by verdict", value_grid(of)) + first_section(of) +
          section("Drift from the exact values, over the root mean square", drift_plot(of)) +
          section("Notes", list(of.notes)) + section("Not seen", list(not_seen(of))) +
          section("Declared", declarations_table(of)) +
          section("Again", "<pre id=\"command\">" + escaped(command(of)) + "</pre>\n") +
          section("All values", value_list(of));
  return html_page("shardproof: " + of.request.file, body);
}

}  // namespace shardproof::tools
