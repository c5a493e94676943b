#include "golden/trace/claim/memory.h"

#include <algorithm>

#include "engine/run/dim_padding.h"
#include "weights/base/memory.h"
#include "weights/model/registry.h"
#include "weights/storage/weights.h"

namespace shardproof::dump {
namespace {

/// Copies of a weight: as generated, and if the run stores it as another type, that, twice while
/// the oracle takes it over.
double copies_of_weight(NumberFormat stored) { return stored == NumberFormat::f32 ? 1.0 : 3.0; }
/// Bytes per checkpoint element: its value and raw value, and the trace's own and the expected
/// number, each with a radius.
constexpr double kBytesOfValue = 2 * sizeof(float) + 2 * 2 * sizeof(double);
/// Additional bytes per element of a text's weight in the walk, as a number with two radii. One
/// weight at a time is held so, twice while it is read: one that is not the matrix of a line. In
/// the field regime all are, with three lanes.
constexpr double kMoreOfTextWeight = 4 * sizeof(double);
/// Bytes per element of a text's value: in the answer, in the trace, and derived three times
/// (bounds::TextReplay), each with two radii, and in the walk while its layer runs. In the field
/// regime a number is three lanes in each of these places, which is less.
constexpr double kBytesOfTextValue = sizeof(float) + 4 * 3 * sizeof(double) + 4 * sizeof(double);
/// Bytes per row of its own length, in each pass.
constexpr double kBytesOfRow = 2 * sizeof(PassRows);
constexpr double kEnough = 1e15;  // more than any machine has: counting may stop

}  // namespace

void require_memory(const Case& c) {
  const auto require = [](double bytes) {
    shardproof::require_memory(bytes, "to judge this takes about",
                               "a smaller model, batch or prompt fits");
  };
  const ModelConfig placed = placed_model(c);
  const bool of_text = c.model.rows != nullptr || c.numerics.regime == Regime::field;
  double bytes = 0.0;
  if (c.lengths.given()) {  // checked before the rows are allocated
    const double chunks = static_cast<double>(c.prompt) / static_cast<double>(c.chunk) + 1.0;
    bytes += kBytesOfRow * static_cast<double>(c.batch) * (chunks + static_cast<double>(c.gen));
    require(bytes);
  }
  const std::vector<WeightSpec> weights = weight_specs(
      placed, c.numerics.weights == NumberFormat::int8 ? NumberFormat::int8 : NumberFormat::f32);
  double of_weights = 0.0, of_largest = 0.0;
  for (const WeightSpec& spec : weights) {
    of_weights += static_cast<double>(element_count(spec.shape));
    of_largest = std::max(of_largest, static_cast<double>(element_count(spec.shape)));
  }
  bytes += copies_of_weight(c.numerics.weights) * bytes_in_memory(weights);
  if (of_text)
    bytes +=
        kMoreOfTextWeight * (c.numerics.regime == Regime::field ? of_weights : 2.0 * of_largest);
  const Passes passes = c.passes();
  // Rows of different lengths, or with prefixes, run alone and are then assembled.
  const SharedPrefix prefix = passes.prefix();
  const bool alone = !passes.full() || prefix.given();
  const std::vector<CheckpointSpec> specs = checkpoint_specs(c.model);
  for (std::int64_t i = 0; i < passes.size() && bytes < kEnough; ++i) {
    const PassPlan pass = passes.at(i);
    // Each row also holds the values of its prefix.
    const double copies = pass.phase == Phase::prefix ? static_cast<double>(passes.batch()) /
                                                            static_cast<double>(prefix.rows)
                                                      : 1.0;
    const double of_value =
        (of_text ? kBytesOfTextValue : kBytesOfValue) + (alone ? 2 * sizeof(float) * copies : 0.0);
    for (const CheckpointSpec& spec : specs) {
      double elements = spec.per_layer ? static_cast<double>(c.model.layers) : 1.0;
      for (const std::int64_t extent :
           shape_of(spec.dims, placed, extents_of(pass, *value_row(spec.name, placed.rows.get()))))
        elements *= static_cast<double>(extent);
      bytes += of_value * elements;
    }
  }
  require(bytes);
}

}  // namespace shardproof::dump
