#include "tools/runner/junit_report.h"

#include <fmt/format.h>

#include <utility>

#include "weights/base/detail/replace_file.h"

namespace shardproof::tools {

JunitReport::JunitReport(CaseSource source, std::string file)
    : source_(std::move(source)), file_(std::move(file)) {
  require_replaceable(file_, "file_write");
}

std::string JunitReport::answered(const Case& c, const CaseAnswer& answered, const Tally&) {
  const Judgement& j = answered.judgement;
  const auto [prefill, decode] = source_.phases(c);
  JunitCase one{fmt::format("{} {}", prefill, decode), print_case(c)};
  one.seconds = answered.seconds;
  // Missing evidence is never a pass.
  if (j.verdict != Verdict::equal) {
    one.outcome = JunitCase::Outcome::failed;
    one.message = fmt::format("{}: {}", to_string(j.verdict), j.explanation());
    one.text = "reproduce: " + source_.command(c);
  }
  cases_.push_back(std::move(one));
  return "";
}

std::string JunitReport::end(const Ending& ending) {
  if (const std::string missing = ending.shortfall(); !missing.empty())
    cases_.push_back({"", "coverage", JunitCase::Outcome::failed, missing});
  for (const std::string& skipped : ending.skipped)
    cases_.push_back({"", skipped, JunitCase::Outcome::skipped, skipped});
  write();
  return "";
}

std::string JunitReport::interrupted(const Ending&, int signal) {
  cases_.push_back({"", "interrupted", JunitCase::Outcome::failed, signal_name(signal)});
  write();
  return "";
}

void JunitReport::write() const {
  replace_file(file_, junit_xml("shardproof verify", cases_), "file_write");
}

}  // namespace shardproof::tools
