#include "tools/report/value_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tools/report/marks.h"
#include "tools/text/html.h"

namespace shardproof::tools {
namespace {

using bounds::Fit;

/// Rows that a browser lays out together: of a table of ten thousand all, before it shows any.
constexpr std::size_t kRowsOfTable = 100;

/// Numbers words by the order in which they occur.
class Order {
 public:
  std::size_t of(const std::string& word) {
    const auto [at, is_new] = places_.emplace(word, words_.size());
    if (is_new) words_.push_back(word);
    return at->second;
  }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> words_;
};

/// Returns whether the first verdict says more against a value than the second.
bool is_worse(Fit a, Fit b) {
  const auto rank = [](Fit fit) { return fit == Fit::not_judged ? -1 : static_cast<int>(fit); };
  return rank(a) > rank(b);
}

/// Splits an id into its place, "decode.1.layer0", and its name.
std::pair<std::string, std::string> place_and_name(const std::string& id) {
  const std::size_t dot = id.rfind('.');
  if (dot == std::string::npos) return {"", id};
  return {id.substr(0, dot), id.substr(dot + 1)};
}

std::string number(double v, bool any) { return any ? fmt::format("{:.1e}", v) : ""; }

std::string said_of(const dump::Row& row) {
  std::string out;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) out += (out.empty() ? "" : "; ") + text;
  };
  if (row.fit == Fit::different)
    add(fmt::format("{} wrong{}", row.wrong, row.follows ? ", follows from its operands" : ""));
  if (row.not_finite > 0) add(fmt::format("{} NaN or infinite", row.not_finite));
  if (row.outliers > 0) add(fmt::format("{} outside 2^-41", row.outliers));
  add(row.why);
  if (!row.needs.empty()) add(fmt::format("needs {}", fmt::join(row.needs, ", ")));
  if (row.evidence) add(row.evidence->text());
  for (const std::string& sign : row.signs) add(sign);
  if (row.incomplete) add("not every element is there");
  if (row.copies_differ) add("its replicas differ");
  return out;
}

std::string row_of_list(const dump::Row& row) {
  const bool judged = row.fit != Fit::not_judged && row.fit != Fit::different;
  const Mark mark = mark_of(row.fit);
  return fmt::format(
      "<tr><td>{}</td><td class=\"{}\">{} {}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
      "<td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
      escaped(row.title), mark.style, mark.character, bounds::to_string(row.fit), row.elements,
      number(row.found(), judged && row.found() > 0),
      number(row.allowed(), judged && row.allowed() > 0),
      number(row.drift, judged && row.drift >= 0), escaped(said_of(row)));
}

}  // namespace

std::string value_grid(const Comparison& of) {
  Order places, names;
  std::map<std::pair<std::size_t, std::size_t>, Fit> cells;
  for (const dump::Row& row : of.verdict.rows) {
    if (row.weight) continue;
    const dump::Subject& subject = of.dumped(row).subject;
    const auto [place, name] = place_and_name(subject.id.empty() ? row.title : subject.id);
    const auto [at, is_new] = cells.emplace(std::pair{places.of(place), names.of(name)}, row.fit);
    if (!is_new && is_worse(row.fit, at->second)) at->second = row.fit;
  }
  if (cells.empty()) return "";
  std::string out = "<div class=\"wide\"><table class=\"grid\" id=\"values\">\n<tr><th></th>";
  for (const std::string& name : names.words())
    out += fmt::format("<th class=\"up\">{}</th>", escaped(name));
  out += "</tr>\n";
  auto cell = cells.begin();
  for (std::size_t place = 0; place < places.words().size(); ++place) {
    out += fmt::format("<tr><th>{}</th>", escaped(places.words()[place]));
    for (std::size_t name = 0; name < names.words().size(); ++name) {
      const bool any = cell != cells.end() && cell->first == std::pair{place, name};
      out += any ? "<td>" + mark_html(cell->second) + "</td>" : "<td></td>";
      if (any) ++cell;
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n" + marks_legend();
}

std::string value_list(const Comparison& of) {
  const std::vector<dump::Row>& rows = of.verdict.rows;
  std::string out = "<div class=\"wide\" id=\"list\">\n";
  for (std::size_t first = 0; first < rows.size(); first += kRowsOfTable) {
    const std::size_t end = std::min(rows.size(), first + kRowsOfTable);
    // The height that a browser takes for it until it comes into sight.
    out += fmt::format(
        "<div class=\"later\" style=\"contain-intrinsic-height: auto {}rem\">\n"
        "<table class=\"list\">\n<tr><th>value</th><th>verdict</th><th>elements"
        "</th><th>found</th><th>allowed</th><th>drift</th><th></th></tr>\n",
        (end - first + 1) * 3 / 2);
    for (std::size_t i = first; i < end; ++i) out += row_of_list(rows[i]);
    out += "</table></div>\n";
  }
  return out + "</div>\n";
}

}  // namespace shardproof::tools
