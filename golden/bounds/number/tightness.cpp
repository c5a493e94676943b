#include "golden/bounds/number/tightness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardproof::bounds {

void Tightness::add(const std::string& step, Kind kind, const Extent& extent, double slack) {
  const Fit fit = fit_of(extent);
  if (fit == Fit::within) {
    ++within;
    if (kind == Kind::running) ++running;
    if (kind == Kind::formula) ++formula;
  } else {
    ++(fit == Fit::near ? near : loose);
  }
  // A value with one right answer errs only by its own rounding: its slack says nothing.
  if (kind != Kind::running || extent.worst == 0 || slack == 0) return;
  slacks.push_back(slack);
  if (least_slack != 0 && slack >= least_slack) return;
  least_slack = slack;
  tightest = step;
}

void Tightness::add(const Tightness& other) {
  within += other.within;
  running += other.running;
  formula += other.formula;
  near += other.near;
  loose += other.loose;
  slacks.insert(slacks.end(), other.slacks.begin(), other.slacks.end());
  if (other.least_slack == 0 || (least_slack != 0 && other.least_slack >= least_slack)) return;
  least_slack = other.least_slack;
  tightest = other.tightest;
}

double Tightness::median_slack() const {
  if (slacks.empty()) return 0.0;
  std::vector<double> sorted = slacks;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

std::string Tightness::to_string() const {
  std::string text = fmt::format(
      "bounds: {} values within (sums: {}, functions: {}, of one right value: {}), {} near, {} "
      "loose",
      within, running, formula, within - running - formula, near, loose);
  if (least_slack > 0)
    text += fmt::format("; slack of sums: least {:.2f} at {}, median {:.1f}", least_slack, tightest,
                        median_slack());
  return text;
}

}  // namespace shardproof::bounds
