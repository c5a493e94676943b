#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tools/runner/report.h"
#include "tools/text/annotation.h"

namespace shardproof::tools {

/// Prints a GitHub annotation for each case that is not equal.
class AnnotationReport : public Report {
 public:
  explicit AnnotationReport(CaseSource source) : source_(std::move(source)) {}

  std::string begin() override { return ""; }
  std::string answered(const Case& c, const CaseAnswer& answered, const Tally&) override {
    const Judgement& j = answered.judgement;
    if (j.verdict == Verdict::equal) return "";
    return annotation(fmt::format("shardproof verify: {}", to_string(j.verdict)),
                      fmt::format("{}; reproduce: {}", j.explanation(), source_.command(c)));
  }
  std::string end(const Ending& ending) override {
    const std::string missing = ending.shortfall();
    return missing.empty() ? "" : annotation("shardproof verify: coverage", missing);
  }
  std::string interrupted(const Ending&, int signal) override {
    return annotation("shardproof verify", "interrupted by " + signal_name(signal));
  }

 private:
  CaseSource source_;
};

}  // namespace shardproof::tools
