#include "golden/bounds/tightness.h"

#include <fmt/format.h>

namespace shardproof::bounds {

void Tightness::add(const std::string& step, double reach, double root_mean_square, double slack) {
  // So that a reach that is no number counts as loose.
  const bool narrow = reach <= kLoose * root_mean_square;
  ++(narrow ? within : loose);
  if (slack == 0 || (least_slack != 0 && slack >= least_slack)) return;
  least_slack = slack;
  tightest = step;
}

void Tightness::add(const Tightness& other) {
  within += other.within;
  loose += other.loose;
  if (other.least_slack == 0 || (least_slack != 0 && other.least_slack >= least_slack)) return;
  least_slack = other.least_slack;
  tightest = other.tightest;
}

std::string Tightness::to_string() const {
  std::string text = fmt::format("bounds: {} values within, {} loose", within, loose);
  if (least_slack > 0) text += fmt::format(", least slack {:.2g} at {}", least_slack, tightest);
  return text;
}

}  // namespace shardproof::bounds
