#include "tools/drawing/log_axis.h"

#include <cmath>

namespace shardproof {
namespace {

/// What is left free at either end, as a share of the whole and at least, in decades.
constexpr double kFreeShare = 0.06, kFreeLeast = 0.08;

}  // namespace

LogAxis::LogAxis(double least, double most, double from, double to)
    : low_(std::log10(least)), high_(std::log10(most)), from_(from), to_(to) {
  const double free = std::fmax(kFreeLeast, kFreeShare * (high_ - low_));
  low_ -= free;
  high_ += free;
}

double LogAxis::at(double value) const {
  return from_ + (std::log10(value) - low_) / (high_ - low_) * (to_ - from_);
}

std::vector<double> LogAxis::ticks() const {
  std::vector<double> all;
  std::vector<double> steps{1.0, 2.0, 5.0};
  if (high_ - low_ > 2.0) steps = {1.0};
  if (high_ - low_ < 1.0) steps = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0};
  for (int decade = static_cast<int>(std::floor(low_)); decade <= high_; ++decade)
    for (const double times : steps) {
      const double value = times * std::pow(10.0, decade);
      const double place = std::log10(value);
      if (place >= low_ && place <= high_) all.push_back(value);
    }
  return all;
}

}  // namespace shardproof
