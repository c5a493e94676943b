#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/runner/report.h"

namespace shardproof::tools {

/// Several reports of one run: what each prints, one after the other.
class ReportList : public Report {
 public:
  void add(std::unique_ptr<Report> report) { all_.push_back(std::move(report)); }

  std::string begin() override {
    return each([](Report& report) { return report.begin(); });
  }
  std::string answered(const Case& c, const CaseAnswer& answered, const Tally& tally) override {
    return each([&](Report& report) { return report.answered(c, answered, tally); });
  }
  std::string end(const Ending& ending) override {
    return each([&](Report& report) { return report.end(ending); });
  }
  std::string interrupted(const Ending& so_far, int signal) override {
    return each([&](Report& report) { return report.interrupted(so_far, signal); });
  }

 private:
  template <class Print>
  std::string each(Print&& print) {
    std::string out;
    for (const auto& report : all_) out += print(*report);
    return out;
  }

  std::vector<std::unique_ptr<Report>> all_;
};

}  // namespace shardproof::tools
