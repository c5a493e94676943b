#include "golden/trace/claim/memory.h"

#include "engine/run/dim_padding.h"
#include "weights/base/memory.h"
#include "weights/model/registry.h"

namespace shardproof::candidate {
namespace {

/// Of an element of a weight: as generated, as stored for the run, and as a replay rounds it.
constexpr double kBytesOfWeight = 3 * sizeof(float);
/// Of an element of a checkpoint: itself and its raw value, the trace's own and what is expected,
/// each of these with a radius.
constexpr double kBytesOfValue = 2 * sizeof(float) + 2 * 2 * sizeof(double);
/// Of a row whose length is its own, in each pass, where it stands.
constexpr double kBytesOfRow = 2 * sizeof(PassRows);
constexpr double kEnough = 1e15;  // no machine has that much: nothing more needs to be counted

}  // namespace

void require_memory(const Case& c) {
  const auto require = [](double bytes) {
    shardproof::require_memory(bytes, "to judge this takes about",
                               "a smaller model, batch or prompt fits");
  };
  const ModelConfig placed = placed_model(c);
  double bytes = 0.0;
  if (c.lengths.given()) {  // before the rows are made
    const double chunks = static_cast<double>(c.prompt) / static_cast<double>(c.chunk) + 1.0;
    bytes += kBytesOfRow * static_cast<double>(c.batch) * (chunks + static_cast<double>(c.gen));
    require(bytes);
  }
  for (const WeightSpec& spec : weight_specs(
           placed, c.numerics.weights == WeightType::int8 ? WeightType::int8 : WeightType::f32))
    bytes += kBytesOfWeight * static_cast<double>(element_count(spec.shape));
  const Passes passes = c.passes();
  // Rows that are not of one length or go on from prefixes run alone, and are then put together.
  const SharedPrefix prefix = passes.prefix();
  const bool alone = !passes.full() || prefix.given();
  const std::vector<CheckpointSpec> specs = checkpoint_specs(c.model);
  for (std::int64_t i = 0; i < passes.size() && bytes < kEnough; ++i) {
    const PassPlan pass = passes.at(i);
    // Each row has its prefix's values, too.
    const double copies = pass.phase == Phase::prefix ? static_cast<double>(passes.batch()) /
                                                            static_cast<double>(prefix.rows)
                                                      : 1.0;
    const double of_value = kBytesOfValue + (alone ? 2 * sizeof(float) * copies : 0.0);
    for (const CheckpointSpec& spec : specs) {
      double elements = spec.per_layer ? static_cast<double>(c.model.layers) : 1.0;
      for (const std::int64_t extent :
           shape_of(spec.dims, placed, extents_of(pass, *value_row(spec.name))))
        elements *= static_cast<double>(extent);
      bytes += of_value * elements;
    }
  }
  require(bytes);
}

}  // namespace shardproof::candidate
