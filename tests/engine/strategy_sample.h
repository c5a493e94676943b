#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/run/inference.h"
#include "engine/run/plan_types.h"

namespace shardproof {

/// One strategy of each kind, for tests that would take too long over all of them.
inline const std::vector<Strategy>& sample_strategies() {
  static const std::vector<Strategy> all = [] {
    std::vector<Strategy> strategies;
    for (const char* name : {"ws1d:heads",          // the stream gathered whole, no partial sums
                             "ws1d:batch-x",        // heads to batch on one axis
                             "ws2d:heads",          // K and V summed where they are
                             "ws2d:batch",          // heads to batch by all_to_all
                             "ws2d:bfirst-xyz",     // sums scattered into the batch
                             "ws2d:pre-zy",         // partial sums moved
                             "ws2d:few-heads",      // Q sharded, and attention copied over axes
                             "ws2d:norm-first-kv",  // two norms' layouts, weights of their own
                             "wg-xy:natural",       // weights gathered in two steps
                             "wg-xyz:batch",        // the batch alone sharded
                             "mixed:1d-2d",         // serial blocks only
                             "sp:1d",               // positions sharded, gathered before attention
                             "context"})            // positions sharded in attention too
      strategies.push_back(Strategy::parse(name));
    return strategies;
  }();
  return all;
}

/// Those of the list that can decode.
inline std::vector<Strategy> decoding(std::vector<Strategy> strategies) {
  std::erase_if(strategies, [](const Strategy& s) { return !decodes(s); });
  return strategies;
}

/// Whether the strategy's table is one of serial blocks alone: it says where `mid` lies, which a
/// parallel block has not, and weights of attention and FFN differ.
inline bool serial_only(const Strategy& strategy) {
  const auto& lines = strategy.table().lines;
  return std::any_of(lines.begin(), lines.end(),
                     [](const LayoutLine& line) { return line.value == "mid"; });
}

/// A run whose prefill is the strategy, with the smallest batch and prompt that it divides.
inline Case run_under(const Strategy& strategy, ModelConfig model, const Torus& torus,
                      NumberFormat act = NumberFormat::f32) {
  Case run;
  run.torus = torus;
  run.model = std::move(model);
  if (serial_only(strategy)) run.model.block = Block::serial;
  run.numerics.act = act;
  run.prefill = strategy;
  run.decode = decodes(strategy) ? strategy : Strategy();
  run.batch = smallest_batch(strategy, torus);
  run.prompt = run.chunk = smallest_length(strategy, torus);
  run.gen = 1;
  return run;
}

/// The programs of the strategy's phase in such a run.
inline PhasePrograms phase_under(const Strategy& strategy, const ModelConfig& model,
                                 const Torus& torus, NumberFormat act = NumberFormat::f32) {
  return make_plan(run_under(strategy, model, torus, act)).prefill;
}

/// The layouts in which the strategies' phases leave their caches, each once.
inline std::vector<Layout> cache_layouts(const std::vector<Strategy>& strategies,
                                         const ModelConfig& model, const Torus& torus) {
  std::vector<Layout> all;
  for (const Strategy& strategy : strategies) {
    const Layout cache =
        partitioned(run_under(strategy, model, torus), strategy, Phase::prefill).cache;
    if (std::find(all.begin(), all.end(), cache) == all.end()) all.push_back(cache);
  }
  return all;
}

}  // namespace shardproof
