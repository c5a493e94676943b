#include "tools/bench/measured.h"

#include <algorithm>
#include <exception>

#include "tools/bench/load.h"
#include "tools/bench/statistics.h"

namespace shardproof::bench {
namespace {

using Part = Cost Sample::*;

std::vector<double> values(const std::vector<Sample>& samples, Part part, double Cost::*clock) {
  std::vector<double> all;
  all.reserve(samples.size());
  for (const Sample& sample : samples) all.push_back(sample.*part.*clock);
  return all;
}

Cost medians(const std::vector<Sample>& samples, Part part) {
  return {median(values(samples, part, &Cost::processor)),
          median(values(samples, part, &Cost::wall))};
}

/// Returns whether the wall clock takes part in the decision. Otherwise `processor` decides.
bool by_wall_clock(Decides decides) { return decides == Decides::wall || decides == Decides::both; }

bool meets(double figure, const Target& target) {
  return target.at_least ? figure >= target.value : figure <= target.value;
}

}  // namespace

Cost Measured::figure() const { return medians(samples, &Sample::figure); }
Cost Measured::ours() const { return medians(samples, &Sample::ours); }

std::optional<Cost> Measured::theirs() const {
  std::vector<Sample> other;
  for (const Sample& sample : samples)
    if (sample.theirs) other.push_back({*sample.theirs, {}, {}});
  if (other.empty()) return {};
  return medians(other, &Sample::ours);
}

double Measured::figure_spread() const {
  double widest = 0.0;
  if (row.decides != Decides::wall)
    widest = spread(values(samples, &Sample::figure, &Cost::processor));
  if (by_wall_clock(row.decides))
    widest = std::max(widest, spread(values(samples, &Sample::figure, &Cost::wall)));
  return widest;
}

std::string Measured::verdict() const {
  if (samples.empty()) return "failed";
  if (!row.target) return "";
  const bool by_processor = row.decides == Decides::wall || meets(figure().processor, *row.target);
  const bool by_wall = !by_wall_clock(row.decides) || meets(figure().wall, *row.target);
  return by_processor && by_wall ? "met" : "missed";
}

bool Measured::steady(const Patience& patience) const {
  return row.once || samples.empty() || figure_spread() <= patience.spread;
}

Measured measure(const Row& row, const Patience& patience) {
  Measured result{row};
  const LoadWatch load;
  try {
    const auto once_more = row.start();
    const int repeats = row.once ? 1 : patience.repeats;
    do {
      result.samples.push_back(once_more());
    } while (static_cast<int>(result.samples.size()) < repeats && !result.steady(patience));
  } catch (const std::exception& error) {
    result.samples.clear();
    result.error = error.what();
  }
  result.others = load.said().others;
  return result;
}

}  // namespace shardproof::bench
