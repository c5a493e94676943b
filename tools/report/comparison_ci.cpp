#include "tools/report/comparison_ci.h"

#include <fmt/format.h>

#include "tools/report/comparison_text.h"
#include "tools/report/sentence.h"
#include "tools/text/annotation.h"
#include "tools/text/junit.h"

namespace shardproof::tools {
namespace {

using bounds::Fit;
using dump::Row;

}  // namespace

std::string comparison_junit(const Comparison& of) {
  std::vector<JunitCase> cases;
  const dump::Verdict& v = of.verdict;
  for (const Row& row : v.rows) {
    const std::size_t dot = row.title.rfind('.');
    JunitCase one{dot == std::string::npos ? "" : row.title.substr(0, dot),
                  dot == std::string::npos ? row.title : row.title.substr(dot + 1)};
    if (row.fit == Fit::not_judged) {
      one.outcome = JunitCase::Outcome::skipped;
      one.message = row.why;
    } else if (row.fit >= of.request.fail_on) {
      one.outcome = JunitCase::Outcome::failed;
      one.message = &row == of.first()
                        ? sentence(of)
                        : fmt::format("{}: {} of {} elements", bounds::to_string(row.fit),
                                      row.wrong, row.elements);
      if (&row == of.first()) one.text = divergence_text(of);
    }
    cases.push_back(std::move(one));
  }
  // A dump may fail although each of its values passes.
  JunitCase whole{"", "dump"};
  if (of.exit_code() != 0) {
    whole.outcome = JunitCase::Outcome::failed;
    whole.message = sentence(of);
  }
  cases.push_back(std::move(whole));
  return junit_xml("shardproof compare " + of.request.file, cases);
}

std::string comparison_annotations(const Comparison& of) {
  std::string out;
  const std::string in = of.request.file + ": ";
  for (const Row& row : of.verdict.rows) {
    if (row.fit == Fit::not_judged || row.fit < of.request.fail_on || row.follows) continue;
    const bool first = &row == of.first();
    out +=
        annotation("shardproof: " + row.title,
                   in + (first ? sentence(of) + "; " + remedy(of)
                               : fmt::format("{} is {}", row.title, bounds::to_string(row.fit))));
  }
  if (out.empty() && of.exit_code() != 0) out = annotation("shardproof", in + sentence(of));
  return out;
}

}  // namespace shardproof::tools
