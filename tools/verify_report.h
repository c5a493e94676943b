#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "golden/cases.h"
#include "golden/coverage.h"
#include "tools/batch.h"
#include "tools/layer_files.h"
#include "tools/progress.h"

namespace shardproof::tools {

/// What is printed of a verification, case by case as it goes on, and at its end: as a table of
/// rows within 80 columns, or as one JSON object (docs/json.md). Safe to interrupt from another
/// thread.
class VerifyReport {
 public:
  struct Options {
    bool json = false;
    bool quiet = false;        ///< rows only of cases that are not equal
    bool random = false;       ///< drawn cases: what they covered counts, and a failure is shrunk
    LayerFiles files = {};     ///< in place of strategies, or beside those that ship
    std::string weights = {};  ///< a weights file
  };

  VerifyReport(Options options, std::int64_t cases);

  /// The command that runs a case of this verification again.
  std::string command(const Case& c) const;

  void add(const Case& c, const Answered& answered);

  /// Prints the totals; the exit code: 0 if every case was equal and the drawn ones covered what
  /// they should, else 1. `skipped`: cases that are not legal, and why.
  int finish(const cases::Coverage& coverage, const std::vector<std::string>& skipped);

  /// Prints what there is so far; nothing is printed afterwards.
  void interrupted(int signal);

 private:
  struct Totals {
    std::int64_t equal = 0, different = 0, not_judged = 0, refused = 0;
    std::int64_t tensors = 0, elements = 0;

    std::int64_t cases() const { return equal + different + not_judged + refused; }
    void add(const Judgement& j);
    std::string to_string() const;
  };

  std::pair<std::string, std::string> phases(const Case& c) const;
  std::string head_of(const Case& c) const;
  std::string row(const Case& c, const Judgement& j) const;
  void print_row(const Case& c, const Judgement& j);
  void print_totals() const;
  void print_all(const cases::Coverage& coverage, const std::vector<std::string>& skipped,
                 const std::string& least);
  std::string shortfall(const cases::Coverage& coverage) const;
  nlohmann::json as_json(const Case& c, const Answered& answered) const;
  nlohmann::json totals_json();
  std::string smallest_failure() const;
  double seconds() const;

  Options options_;
  std::int64_t cases_;
  Progress progress_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  bool closed_ = false;
  Totals totals_;
  Drift drift_;  // of all f32 cases
  std::int64_t drifting_ = 0;
  std::string head_;                                        // printed last
  std::map<std::string, std::vector<std::int64_t>> notes_;  // with the numbers of their cases
  nlohmann::json results_ = nlohmann::json::array();
  std::optional<std::pair<Case, Verdict>> first_failed_;
};

}  // namespace shardproof::tools
