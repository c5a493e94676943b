#include "engine/shards/finding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace shardproof {

std::string_view to_string(Detector detector) {
  switch (detector) {
    case Detector::types:
      return "types";
    case Detector::replicas:
      return "replicas";
    case Detector::values:
      return "values";
    default:
      return "run";
  }
}

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
