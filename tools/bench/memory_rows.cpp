// Peak memory allocated for shards, compared with the peak of live shards.
#include <cmath>
#include <limits>

#include "engine/numeric/buffer.h"
#include "tools/bench/ffn.h"
#include "tools/bench/row.h"

namespace shardproof::bench {
namespace {

Sample held_over_live(Regime regime) {
  chip_memory::reset_peaks();
  const std::int64_t before = chip_memory::usage().live;
  const Ffn ffn(64);
  const SimulatedFfn simulation(ffn, torus_of(64), regime, true, calling_thread());
  const Cost start = clocks(Whose::thread);
  for (int i = 0; i < 5; ++i) simulation.run();
  const Cost took = clocks(Whose::thread) - start;
  const auto held = static_cast<double>(chip_memory::usage().peak_held - before);
  return {took,
          {},
          {held / static_cast<double>(simulation.peak_bytes()),
           std::numeric_limits<double>::quiet_NaN()}};
}

}  // namespace

std::vector<Row> memory_rows() {
  std::vector<Row> rows;
  for (const Regime regime : {Regime::f32, Regime::exact}) {
    const std::string name = regime == Regime::f32 ? "f32" : "exact";
    rows.push_back({.id = "memory/" + name,
                    .group = "FFN on 64 chips, 64 tokens, memory held / live shards",
                    .what = name,
                    .target = Target{1.2},
                    .decides = Decides::neither,
                    .once = true,
                    .start = [regime] { return [regime] { return held_over_live(regime); }; }});
  }
  return rows;
}

}  // namespace shardproof::bench
