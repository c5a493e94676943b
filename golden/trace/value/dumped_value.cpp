#include "golden/trace/value/dumped_value.h"

#include <algorithm>
#include <cmath>

#include "golden/compare/block_map.h"
#include "golden/trace/value/coarse.h"
#include "golden/trace/value/detail/each_number.h"
#include "weights/base/detail/index.h"

namespace shardproof::dump {

bool DumpedValue::coarser_than(NumberFormat format) const {
  return coarse_of(encoding).unit > bounds::unit_of(format);
}

bool DumpedValue::finer_than_f32() const {
  if (encoding != NumberFormat::f64) return false;
  return std::any_of(shards.begin(), shards.end(), [](const Numbers& shard) {
    for (std::size_t i = 0; i < shard.size(); ++i)
      if (const double v = shard[i];
          !std::isnan(v) && bounds::values({v, v}, NumberFormat::f32).low != v)
        return true;
    return false;
  });
}

std::vector<int> DumpedValue::group(int chip) const {
  std::vector<int> members = judged_group(layout, torus, chip);
  const bool whole_group = std::none_of(members.begin(), members.end(),
                                        [&](int member) { return shards[at(member)].empty(); });
  return members.front() == chip && whole_group ? members : std::vector<int>();
}

bool DumpedValue::complete() const {
  // Blocks of all chips are the whole value.
  bool all = !shards.empty();
  for (std::size_t chip = 0; chip < shards.size(); ++chip)
    all = all && !shards[chip].empty() && places[chip].of_block();
  if (all) return true;
  std::vector<bool> seen = padding;
  seen.resize(static_cast<std::size_t>(element_count(subject.shape)), false);
  for (int chip = 0; chip < torus.chips(); ++chip)
    if (!group(chip).empty())
      places[static_cast<std::size_t>(chip)].each(
          [&](std::size_t, std::int64_t place) { seen[static_cast<std::size_t>(place)] = true; });
  return std::find(seen.begin(), seen.end(), false) == seen.end();
}

std::optional<bounds::IntervalTensor> assembled_value(const DumpedValue& dumped) {
  if (!dumped.complete()) return std::nullopt;
  bounds::IntervalTensor whole(dumped.subject.shape);
  std::vector<bool> seen(whole.size(), false);
  each_number(dumped, [&](double number, const std::vector<int>&, std::int64_t place, double) {
    const double v = number * dumped.unit(place);
    double &center = whole.center[at(place)], &radius = whole.radius[at(place)];
    if (!seen[at(place)])
      center = v;
    else if (v != center)  // also for NaN
      radius = std::isnan(v) ? v : std::max(radius, std::abs(v - center));
    seen[at(place)] = true;
    if (dumped.unit(place) != 1.0) radius = std::max(radius, 0x1p-52 * std::abs(center));
  });
  whole.likely = whole.radius;
  return whole;
}

}  // namespace shardproof::dump
