#include "tools/report/pair_page.h"

#include <fmt/format.h>

#include "tools/report/pair_plot.h"
#include "tools/report/pair_text.h"
#include "tools/text/html.h"

namespace shardproof::tools {
namespace {

using dump::Likeness;
using dump::PairRow;

std::string_view style_of(Likeness likeness) {
  if (is_wrong(likeness)) return "wrong";
  if (likeness == Likeness::operands) return "weak";
  return likeness == Likeness::not_judged ? "none" : "right";
}

std::string_view sign_of(Likeness likeness) {
  if (is_wrong(likeness)) return "✗";
  switch (likeness) {
    case Likeness::same:
      return "=";
    case Likeness::rounding:
      return "≈";
    case Likeness::operands:
      return "~";
    default:
      return "·";
  }
}

std::string part(std::string_view title, const std::string& body) {
  return body.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", title, body);
}

std::string bullets(const std::vector<std::string>& items, std::string_view id) {
  if (items.empty()) return "";
  std::string out = fmt::format("<ul id=\"{}\">\n", id);
  for (const std::string& item : items) out += "<li>" + escaped(item) + "</li>\n";
  return out + "</ul>\n";
}

std::vector<std::string> said_first(const std::vector<dump::Difference>& differences) {
  std::vector<std::string> all;
  for (const dump::Difference& one : differences) all.push_back(one.of + " differ: " + one.text);
  return all;
}

std::string values_table(const std::vector<PairRow>& rows, const dump::Pair* pair) {
  std::string out = fmt::format(
      "<table class=\"list\" id=\"values\">\n<tr><th>value</th><th></th><th>verdict</th>{}"
      "<th>apart / rms</th><th>units</th><th></th></tr>\n",
      pair == nullptr ? "" : "<th>found A</th><th>found B</th>");
  const auto found = [](const dump::JudgedTrace& of, const std::optional<std::size_t>& row) {
    return row ? fmt::format("<td class=\"n\">{:.1e}</td>", of.verdict.rows[*row].found())
               : std::string("<td></td>");
  };
  for (const PairRow& row : rows) {
    const bool far = row.paired() && row.apart.unequal > 0 && !row.other_tokens;
    out += fmt::format(
        "<tr><td>{}</td><td class=\"{}\">{}</td><td>{}</td>{}<td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td>{}</td></tr>\n",
        escaped(row.title), style_of(row.likeness), sign_of(row.likeness), to_string(row.likeness),
        pair == nullptr ? "" : found(pair->a, row.a) + found(pair->b, row.b),
        far ? fmt::format("{:.1e}", row.apart.relative()) : "",
        far ? fmt::format("{:.1f}", row.apart.units) : "", escaped(row.why));
  }
  return out + "</table>\n";
}

std::string drift_list(const dump::Pair& pair) {
  const std::vector<LayerDrift> layers = layer_drifts(pair);
  if (layers.empty()) return "";
  std::string out =
      "<table class=\"list\" id=\"layers\">\n<tr><th>output</th><th>A</th><th>random orders</th>"
      "<th>B</th><th>random orders</th></tr>\n";
  const auto runs = [](const dump::Wander::OfLayer* of) {
    return of == nullptr ? std::string() : fmt::format("{:.1e} to {:.1e}", of->least, of->most);
  };
  const auto drift = [](double v) { return v < 0 ? std::string() : fmt::format("{:.1e}", v); };
  for (const LayerDrift& one : layers)
    out += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td></tr>\n",
        escaped(one.id), drift(one.a), runs(one.runs_a), drift(one.b), runs(one.runs_b));
  return out + "</table>\n";
}

}  // namespace

std::string pair_page(const PairComparison& of) {
  const bool plain = of.request.plain;
  const bool right = of.exit_code() == 0;
  const bool wrong = plain ? !of.plain.findings.empty() : of.pair.first.has_value();
  std::string body = fmt::format(
      "<h1>shardproof compare {} {}</h1>\n<p class=\"sentence {}\" id=\"sentence\">{}{}</p>\n",
      escaped(of.request.a.file), escaped(of.request.b.file),
      right   ? "right"
      : wrong ? "wrong"
              : "weak",
      right   ? "✓ "
      : wrong ? "✗ "
              : "? ",
      escaped(sentence(of)));
  body += part("Said first",
               bullets(said_first(plain ? of.plain.differences : of.pair.differences), "said"));
  if (plain) {
    body += part("Found", bullets(of.plain.findings, "found"));
  } else {
    const std::string first = wrong_value_text(of.pair, false) + wrong_value_text(of.pair, true);
    std::vector<std::string> logits, tokens;
    for (const dump::PositionOfLogits& one : of.pair.logits) logits.push_back(words_of(one));
    for (const dump::Parting& one : of.pair.partings) tokens.push_back(words_of(one));
    body += part("What is wrong",
                 first.empty() ? "" : "<pre id=\"first\">" + escaped(first) + "</pre>\n");
    body += part("Drift from exact by layer, over the root mean square",
                 pair_plot(of.pair) + drift_list(of.pair));
    body += part("Logits", bullets(logits, "logits")) +
            part("Tokens that part", bullets(tokens, "tokens"));
  }
  body += part("Values",
               values_table(plain ? of.plain.rows : of.pair.rows, plain ? nullptr : &of.pair)) +
          part("Again", "<pre id=\"command\">" + escaped(command(of)) + "</pre>\n");
  return html_page("shardproof: " + of.request.a.file + " and " + of.request.b.file, body);
}

}  // namespace shardproof::tools
