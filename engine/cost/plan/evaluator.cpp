#include "engine/cost/plan/evaluator.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/cost/paper/calibration.h"
#include "engine/cost/work/efficiency.h"
#include "engine/cost/work/paper_volumes.h"
#include "weights/text/text_model.h"

namespace shardproof::cost {
namespace {

/// Bytes of the residual stream on one chip, which is live throughout a layer.
double stream_bytes(const Strategy& strategy, const ModelConfig& model, const Torus& torus,
                    const Pass& pass) {
  const Layout& layout = strategy.table().find("in")->steps.front().layout;
  double elements = pass.tokens() * static_cast<double>(model.E);
  for (const Layout::Dim& dim : layout.dims()) elements /= torus.size(dim.axes);
  return elements * bytes_of(NumberFormat::bf16);
}

}  // namespace

std::string why_no_pass(const Strategy& strategy, const ModelConfig& placed, const Torus& torus,
                        const Pass& pass) {
  if (pass.phase == Phase::decode && !decodes(strategy))
    return "it shards the positions of a pass, and a decode step has one";
  const std::map<char, std::int64_t> extents{{'E', placed.E}, {'F', placed.F}, {'H', placed.H},
                                             {'Q', placed.Q}, {'V', placed.V}, {'B', pass.B},
                                             {'L', pass.L}};
  for (const ShardedDim& one : sharded_dims(strategy))
    if (const std::int64_t extent = extents.at(one.dim), blocks = torus.size(one.axes);
        extent % blocks != 0)
      return fmt::format("{}={} is not divisible by {}={}", one.dim, extent, product_name(one.axes),
                         blocks);
  return "";
}

Evaluator::Evaluator(Setting setting) : setting_(std::move(setting)) {
  setting_.placed = model_with_weights(std::move(setting_.placed), setting_.weights);
}

const WorkFormulas& Evaluator::formulas(const Strategy& strategy, const Pass& pass) {
  std::vector<WorkFormulas>& made =
      made_[strategy.to_string() + (pass.phase == Phase::decode ? " decode" : " prefill")];
  for (const WorkFormulas& one : made)
    if (one.hold_for(pass)) return one;
  return made.emplace_back(setting_.placed, released_numerics(setting_.weights), setting_.torus,
                           strategy, pass);
}

Candidate Evaluator::candidate(const Strategy& strategy, const Pass& pass, std::int64_t batch) {
  const WorkFormulas& of_pass = formulas(strategy, pass);
  const Work work = of_pass.at(pass);
  Candidate c;
  c.strategy = strategy;
  c.torus = setting_.torus;
  c.weights = setting_.weights;
  c.placed = setting_.placed;
  c.pass = pass;
  c.batch = batch;
  c.resting = of_pass.resting();
  c.caches = of_pass.caches();
  const auto passes = static_cast<double>(c.passes());
  const auto send = [&](const PartWork& part, double times) {
    for (const Traffic& t : part.traffic)
      if (t.group > 1) c.sent[t.axes.sorted().to_string()] += passes * times * t.sent_bytes;
  };
  send(work.layer, work.alike());
  for (const LayersWork& kind : work.others) send(kind.layer, kind.layers);
  send(work.ends, 1.0);
  if (setting_.volumes == Volumes::full) {
    c.layer_elements = passes * elements_of_layer(work);
    c.bounds = bounds_of(work, setting_.chip, NumberFormat::bf16);
  } else {
    c.layer_elements = passes * paper_volume(strategy, setting_.placed, setting_.torus, pass);
    c.bounds = bounds_by_paper(c, work);
  }
  c.lower = passes * c.bounds.lower();
  c.estimate = passes * cost::estimate(c.bounds);
  c.additive = passes * c.bounds.additive();
  c.memory.weights = work.total(&PartWork::weight_bytes);
  c.memory.live = stream_bytes(strategy, setting_.placed, setting_.torus, pass) +
                  std::max(work.live_bytes_of_layer(), work.ends.live_bytes);
  return c;
}

Bounds Evaluator::bounds_by_paper(const Candidate& candidate, const Work& work) const {
  Bounds bounds;
  bounds.layers = work.layers;
  const double layers = work.layers, chips = work.chips;
  const Chip& chip = setting_.chip;
  bounds.layer.compute = 2.0 * setting_.parameters * candidate.pass.tokens() / layers /
                         (chips * chip.peak(NumberFormat::bf16));
  bounds.layer.needed = bounds.layer.compute;
  bounds.layer.memory = (work.total(&PartWork::weight_bytes) + work.total(&PartWork::cache_reads)) /
                        layers / chip.hbm_bandwidth;
  if (chips > 1)
    bounds.layer.communication = candidate.layer_elements /
                                 static_cast<double>(candidate.passes()) *
                                 bytes_of(NumberFormat::bf16) / chip.sends(3);
  return bounds;
}

Candidate Evaluator::prefill(const Strategy& strategy, std::int64_t batch, std::int64_t rows,
                             std::int64_t prompt) {
  const Pass pass{Phase::prefill, rows, prompt, 0};
  Candidate c = candidate(strategy, pass, batch);
  const Pass least{Phase::prefill, smallest_batch(strategy, setting_.torus), prompt, 0};
  const Work work = formulas(strategy, pass).at(pass);
  const PartWork ends = formulas(strategy, least).at(least).ends;
  c.memory.live = stream_bytes(strategy, setting_.placed, setting_.torus, pass) +
                  std::max(work.live_bytes_of_layer(), ends.live_bytes);
  c.memory.caches = static_cast<double>(c.passes()) * work.of_layers(&PartWork::cache_bytes);
  return c;
}

Candidate Evaluator::decode(const Strategy& strategy, std::int64_t batch, std::int64_t context,
                            std::int64_t gen) {
  const Pass mean{Phase::decode, batch, 1, context - 1 - (gen - 1) / 2};
  const Pass last{Phase::decode, batch, 1, context - 1};
  Candidate c = candidate(strategy, mean, batch);
  c.memory.caches = formulas(strategy, last).at(last).of_layers(&PartWork::cache_bytes);
  return c;
}

}  // namespace shardproof::cost
