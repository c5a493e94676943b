#include "engine/shards/finding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "weights/base/detail/word_table.h"

namespace shardproof {
namespace {

constexpr std::pair<std::string_view, Detector> kDetectors[] = {{"types", Detector::types},
                                                                {"replicas", Detector::replicas},
                                                                {"values", Detector::values},
                                                                {"run", Detector::run}};

}  // namespace

std::string_view to_string(Detector detector) { return word_in(kDetectors, detector); }

std::string Finding::to_string() const {
  if (detector == Detector::run && label.empty()) return "internal error: " + message;
  if (detector != Detector::values) return label + ": " + message;
  return fmt::format("{}step {} = {}: {} on chip {} at [{}]: expected {}, got {}", where, step, op,
                     checkpoint, chip, fmt::join(index, ","), expected, actual);
}

void Findings::add(Finding finding) {
  ended_ = ended_ || until_ == Until::first || finding.detector == Detector::run;
  all_.push_back(std::move(finding));
}

FindingsError::FindingsError(std::vector<Finding> findings)
    : Error(findings.at(0).label, findings.at(0).message), findings_(std::move(findings)) {}

}  // namespace shardproof
