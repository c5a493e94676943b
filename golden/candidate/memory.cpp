#include "golden/candidate/memory.h"

#include "weights/memory.h"
#include "weights/registry.h"

namespace shardproof::candidate {
namespace {

/// Of an element of a weight: as generated, as stored for the run, and as a replay rounds it.
constexpr double kBytesOfWeight = 3 * sizeof(float);
/// Of an element of a checkpoint: itself and its raw value, the trace's own and what is expected,
/// each of these with a radius.
constexpr double kBytesOfValue = 2 * sizeof(float) + 2 * 2 * sizeof(double);
constexpr double kEnough = 1e15;  // no machine has that much: nothing more needs to be counted

}  // namespace

void require_memory(const Case& c) {
  double bytes = 0.0;
  for (const WeightSpec& spec : weight_specs(
           c.model, c.numerics.weights == WeightType::int8 ? WeightType::int8 : WeightType::f32))
    bytes += kBytesOfWeight * static_cast<double>(element_count(spec.shape));
  const Passes passes = c.passes();
  const std::vector<CheckpointSpec> specs = checkpoint_specs(c.model);
  for (std::int64_t i = 0; i < passes.size() && bytes < kEnough; ++i) {
    const PassPlan pass = passes.at(i);
    const PassExtents extents{pass.batch(), pass.L, pass.cached + pass.L};
    for (const CheckpointSpec& spec : specs) {
      double elements = spec.per_layer ? static_cast<double>(c.model.layers) : 1.0;
      for (const std::int64_t extent : shape_of(spec.dims, c.model, extents))
        elements *= static_cast<double>(extent);
      bytes += kBytesOfValue * elements;
    }
  }
  shardproof::require_memory(bytes, "to judge this takes about",
                             "a smaller model, batch or prompt fits");
}

}  // namespace shardproof::candidate
