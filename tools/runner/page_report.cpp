#include "tools/runner/page_report.h"

#include <fmt/format.h>

#include <utility>

#include "tools/text/html.h"
#include "weights/base/detail/replace_file.h"

namespace shardproof::tools {
namespace {

constexpr std::int64_t kMostListed = 10'000;

std::string mark(Verdict verdict) {
  switch (verdict) {
    case Verdict::equal:
      return "<span class=\"right\">= equal</span>";
    case Verdict::different:
      return "<span class=\"wrong\">✗ different</span>";
    case Verdict::refused:
      return "<span class=\"weak\">? refused</span>";
    case Verdict::not_judged:
      break;
  }
  return "<span class=\"weak\">· not judged</span>";
}

std::string reach_text(const Finding& found) {
  if (!found.reach) return "";
  const Reach& r = *found.reach;
  return fmt::format("wrong: {} of {} elements, on {} of {} chips; worst on chip {}\n", r.elements,
                     r.of_elements, r.chips, r.of_chips, r.worst_chip);
}

}  // namespace

PageReport::PageReport(CaseSource source, std::string file)
    : source_(std::move(source)), file_(std::move(file)) {
  require_replaceable(file_, "file_write");
}

std::string PageReport::answered(const Case& c, const CaseAnswer& answered, const Tally&) {
  const Judgement& j = answered.judgement;
  const std::string line = escaped(print_case(c));
  if (j.verdict != Verdict::equal) {
    if (failures_.empty()) first_ = fmt::format("{}: {}", j.explanation(), print_case(c));
    std::string text = j.explanation() + "\n";
    if (j.difference() != nullptr) text += reach_text(*j.difference());
    text += "reproduce: " + source_.command(c);
    failures_ += fmt::format("<h2>{}</h2>\n<p>{}</p>\n<pre>{}</pre>\n", mark(j.verdict), line,
                             escaped(text));
  }
  if (j.verdict != Verdict::equal || listed_ < kMostListed) {
    ++listed_;
    rows_ += fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{:.2f}</td></tr>\n",
        mark(j.verdict), line, j.tensors, j.elements, answered.seconds);
  }
  return "";
}

std::string PageReport::end(const Ending& ending) {
  write(ending, "");
  return "";
}

std::string PageReport::interrupted(const Ending& so_far, int signal) {
  write(so_far, signal_name(signal));
  return "";
}

void PageReport::write(const Ending& ending, const std::string& ended) const {
  const Tally& tally = ending.tally;
  const bool passed = ending.passed() && ended.empty();
  std::string sentence = passed ? fmt::format("✓ All {} cases are equal.", tally.cases())
                                : "✗ " + (first_.empty() ? ending.shortfall() : first_);
  if (!ended.empty()) sentence = fmt::format("? Interrupted by {}. {}", ended, first_);
  std::string body = fmt::format(
      "<h1>shardproof verify</h1>\n<p class=\"sentence {}\" id=\"sentence\">{}</p>\n"
      "<p>{} in {:.1f} s; {} values of {} elements compared.</p>\n{}",
      passed ? "right" : "wrong", escaped(sentence), escaped(tally.to_string()), ending.seconds,
      tally.tensors, tally.elements, failures_);
  for (const std::string& skipped : ending.skipped)
    body += fmt::format("<p class=\"none\">skipped: {}</p>\n", escaped(skipped));
  if (const std::string missing = ending.shortfall(); !missing.empty())
    body += fmt::format("<p class=\"weak\">{}</p>\n", escaped(missing));
  body += fmt::format(
      "<h2>Cases</h2>\n<div class=\"wide\"><table class=\"list\" id=\"cases\">\n<tr><th>verdict"
      "</th><th>case</th><th>values</th><th>elements</th><th>seconds</th></tr>\n{}</table></div>\n",
      rows_);
  if (listed_ < tally.cases())
    body += fmt::format("<p class=\"none\">and {} equal ones</p>\n", tally.cases() - listed_);
  replace_file(file_, html_page("shardproof verify", body), "file_write");
}

}  // namespace shardproof::tools
