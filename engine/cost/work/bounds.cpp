#include "engine/cost/work/bounds.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardproof::cost {
namespace {

Seconds part_seconds(const PartWork& work, const Chip& chip, double peak) {
  Seconds s;
  s.compute = work.flops() / peak;
  s.needed = work.needed_flops / peak;
  s.memory = (work.weight_reads + work.cache_reads) / chip.hbm_bandwidth;
  for (const Traffic& t : work.traffic) {
    if (t.group == 1) continue;
    s.communication += communication_seconds(t, chip);
    s.hops += t.hops * chip.hop_latency;
  }
  return s;
}

}  // namespace

double Seconds::lower() const { return std::max({needed, memory, communication + hops}); }

Seconds Bounds::total() const {
  const auto of = [&](double Seconds::*what) { return layers * (layer.*what) + ends.*what; };
  return {of(&Seconds::compute), of(&Seconds::memory), of(&Seconds::communication),
          of(&Seconds::hops), of(&Seconds::needed)};
}

double communication_seconds(const Traffic& traffic, const Chip& chip) {
  if (traffic.group == 1) return 0.0;
  const double bandwidth = chip.sends(traffic.rings);
  if (bandwidth <= 0.0)
    throw Error("bounds_c1", fmt::format("chip {} has no interconnect, and {} sends over {}; a "
                                         "torus of 1 chip sends nothing",
                                         chip.name, traffic.step, traffic.axes.to_string()));
  const double knob = traffic.kind == OpKind::all_to_all ? chip.all_to_all : 1.0;
  return knob * traffic.sent_bytes / bandwidth;
}

Bounds bounds_of(const Work& work, const Chip& chip, NumberFormat act) {
  const double peak = chip.peak(act);
  Seconds layer = part_seconds(work.layer, chip, peak);
  if (!work.others.empty()) {
    const auto mean = [&](double Seconds::*what) {
      return work.over_layers([&](const PartWork& part) {
        return part_seconds(part, chip, peak).*what;
      }) / work.layers;
    };
    layer = {mean(&Seconds::compute), mean(&Seconds::memory), mean(&Seconds::communication),
             mean(&Seconds::hops), mean(&Seconds::needed)};
  }
  return {layer, part_seconds(work.ends, chip, peak), work.layers};
}

}  // namespace shardproof::cost
