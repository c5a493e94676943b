#include "engine/cost/analysis/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "engine/cost/analysis/intensity.h"
#include "engine/cost/graph/graph.h"
#include "engine/cost/graph/graph_work.h"

namespace shardproof::cost {
namespace {

double real(std::int64_t value) { return static_cast<double>(value); }

/// Returns the divisor of a number, at most `most`, nearest to `asked`, the smaller of two.
std::int64_t nearest_divisor(std::int64_t asked, std::int64_t number, std::int64_t most) {
  std::int64_t best = 1;
  const auto offer = [&](std::int64_t d) {
    const std::int64_t nearer = std::abs(best - asked) - std::abs(d - asked);
    if (d <= most && (nearer > 0 || (nearer == 0 && d < best))) best = d;
  };
  for (std::int64_t d = 1; d * d <= number; ++d)
    if (number % d == 0) {
      offer(d);
      offer(number / d);
    }
  return best;
}

void require_legal_pipeline(const PipelineSetting& s, const Chip& chip) {
  const std::array<std::pair<std::string_view, std::int64_t>, 7> numbers{
      {{"stages", s.pipeline.stages},
       {"microbatches", s.pipeline.microbatches},
       {"steps", s.pipeline.steps},
       {"batch", s.batch},
       {"tokens", s.tokens},
       {"context", s.context},
       {"tensor", s.tensor}}};
  for (const auto& [name, number] : numbers)
    if (number < 1)
      throw Error("pipeline_c1",
                  fmt::format("{}={}: must be at least 1; nearest legal: 1", name, number));
  if (s.tokens > s.context)
    throw Error("pipeline_c1",
                fmt::format("tokens={} of a context of {}: the context has the new tokens, too; "
                            "nearest legal: tokens={}",
                            s.tokens, s.context, s.context));
  if (s.pipeline.stages > s.model.layers)
    throw Error("pipeline_c2",
                fmt::format("stages={}: a stage has at least one of the {} layers; nearest legal: "
                            "{}",
                            s.pipeline.stages, s.model.layers, s.model.layers));
  if (s.batch % s.pipeline.microbatches != 0)
    throw Error("pipeline_c3",
                fmt::format("microbatches={} do not divide batch={}; nearest legal: {}",
                            s.pipeline.microbatches, s.batch,
                            nearest_divisor(s.pipeline.microbatches, s.batch, s.batch)));
  const std::int64_t near =
      nearest_divisor(s.tensor, std::gcd(s.model.H, s.model.F), chip.max_chips);
  if (s.model.H % s.tensor != 0 || s.model.F % s.tensor != 0)
    throw Error("pipeline_c3", fmt::format("tensor={} does not divide H={} and F={}; nearest "
                                           "legal: {}",
                                           s.tensor, s.model.H, s.model.F, near));
  if (s.tensor > chip.max_chips)
    throw Error("pipeline_c4",
                fmt::format("tensor={}: at most {} chips {} are joined; nearest legal: {}",
                            s.tensor, chip.max_chips, chip.name, near));
  if (s.pipeline.stages > 1 && chip.sends(1) <= 0.0)
    throw Error("pipeline_c4", fmt::format("stages={}: {} has no interconnect to send activations "
                                           "by; nearest legal: 1",
                                           s.pipeline.stages, chip.name));
}

}  // namespace

double Pipeline::slots() const {
  return real(steps - 1) * real(std::max(microbatches, stages)) + real(microbatches + stages - 1);
}

double Pipeline::bubble() const { return (slots() - real(steps) * real(microbatches)) / slots(); }

PipelineCost pipeline_cost(const PipelineSetting& s, const Chip& chip) {
  require_legal_pipeline(s, chip);
  const double tensor = real(s.tensor), peak = chip.peak(s.act);
  const ElementBytes bytes = element_bytes(s.weights, s.act);
  const std::int64_t rows = s.batch / s.pipeline.microbatches;
  PipelineCost cost;
  cost.chips = s.tensor * s.pipeline.stages;
  cost.joined = cost.chips <= chip.max_chips;
  cost.layers_of_stage = (s.model.layers + s.pipeline.stages - 1) / s.pipeline.stages;
  cost.bubble = s.pipeline.bubble();
  // The unembedding counts to the largest stage, which may also be the last.
  const double layers = real(cost.layers_of_stage) / real(s.model.layers);
  // Keys and values, and their matrices, are cut only into whole heads.
  const double of_heads = real(std::gcd(s.tensor, s.model.K));
  for (const Product& one : products_of(s.model, {rows, s.tokens, s.context})) {
    const double share = one.of_layer ? layers : 1.0;
    const double weights_on = one.of_key_heads ? of_heads : tensor;
    cost.slot.compute += share * one.flops() / weights_on / peak;
    cost.slot.needed += share * one.needed_flops() / weights_on / peak;
    if (one.factor == Factor::weight)
      cost.weight_bytes += share * factor_bytes(one, bytes) / weights_on;
    else
      cost.cache_bytes += share * factor_bytes(one, bytes) / of_heads;
  }
  cost.slot.memory = (cost.weight_bytes + cost.cache_bytes) / chip.hbm_bandwidth;
  cost.cache_bytes *= real(s.pipeline.microbatches);
  // A single stage holds both tables if they are untied, but reads only rows of the embedding.
  if (s.pipeline.stages == 1)
    cost.weight_bytes +=
        graph_work(s.model, s.weights, s.act, {Phase::decode, 1, 1, 0}).table_bytes / tensor;
  const double activations = real(rows) * real(s.tokens) * real(s.model.E) * bytes.activations;
  if (s.tensor > 1) {
    // After each block an all-reduce over the chips: twice D·(K−1)/K, twice K − 1 hops.
    const double sums = real(cost.layers_of_stage) * reductions_of_layer(*graph_of(s.model));
    cost.slot.communication = sums * 2.0 * activations * (tensor - 1.0) / tensor / chip.sends(1);
    cost.slot.hops = sums * 2.0 * (tensor - 1.0) * chip.hop_latency;
  }
  if (s.pipeline.stages > 1) cost.transfer = activations / chip.sends(1) + chip.hop_latency;
  cost.lower = s.pipeline.slots() * std::max(cost.slot.lower(), cost.transfer);
  cost.additive = s.pipeline.slots() * (cost.slot.additive() + cost.transfer);
  return cost;
}

}  // namespace shardproof::cost
